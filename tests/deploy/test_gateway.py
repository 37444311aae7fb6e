"""The configurations of gateways in deploy/, with a real proxy as the only address that clients reach."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import headgate
from demo.ports import free_port
from headgate.maintenance import Maintenance
from headgate_cli.cluster import Access
from headgate_cli.status.gathering import gather
from support.access import role, write_access
from support.certificates import Authority, Certificate, self_signed
from support.cluster import Cluster
from support.exactly_once import assert_exactly_once, read_merged
from support.gateway import Gateway, gateway
from support.producers import Producers
from support.tiers import slow_but
from support.waiting import wait_until
from support.workload import SCHEMA, Workload

KINDS = ("envoy", "nginx")
TOKEN = "alice-token"
WORKLOAD = Workload(event_time=False)
LIMIT_S = 300
"""For one step on a loaded machine."""
SOON = ["--checkpoint-interval", "500ms", "--checkpoint-min-interval", "100ms"]
PATIENT = ["--writer-timeout", "20s", "--lease-ttl", "30s", "--lease-renewal", "2s"]
SILENCE = {
    "envoy": {"stream_idle_timeout: 0s": "stream_idle_timeout: 3s"},
    "nginx": {"grpc_read_timeout 24h": "grpc_read_timeout 3s"},
}
"""A proxy that ends streams on which nothing comes."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the servers behind the gateway listen for clients."""

    coordinators: list[int]
    writers: list[int]


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster of two coordinators and two writers, which clients reach at ``gate`` alone."""

    cluster: Cluster
    gate: Gateway
    ca: str
    audit: Path

    def connect(self, *, front: bool = True) -> headgate.Headgate:
        return headgate.connect(self.gate.address, token=TOKEN, tls=headgate.Tls(ca=self.ca), front=front, timeout=LIMIT_S)

    def ended_streams(self) -> int:
        """How many streams of channels have ended at writers so far."""
        return self.audit.read_text().count("IngestService/Append") if self.audit.exists() else 0


@contextmanager
def behind_gateway(kind: str, folder: Path, changes: Mapping[str, str] | None = None, *, named: bool = False) -> Iterator[Scene]:
    """``changes``: of the gateway's configuration. ``named``: the coordinators' setting `front` names it."""
    folder.mkdir()
    certificate, authority = self_signed(folder / "certificate"), Authority(folder / "services")
    ports, audit = Ports([free_port(), free_port()], [free_port(), free_port()]), folder / "audit"
    with gateway(kind, folder / "gateway", certificate, ports, changes or {}) as gate:
        options = flags(folder, certificate, authority, ports)
        options["writer"] += ["--audit-log", str(audit)]
        if named:
            options["coordinator"] += ["--front", gate.address]
        with Cluster(folder / "cluster", coordinators=2, writers=2, options=options) as cluster:
            yield Scene(cluster, gate, str(certificate.cert), audit)


def flags(folder: Path, certificate: Certificate, authority: Authority, ports: Ports) -> dict[str, list[str]]:
    """Services reach each other by certificates; the addresses for clients lead nowhere."""
    access = write_access(folder / "access.toml", {TOKEN: "alice"}, role("alice", "write", "create", "operate"))
    own = [f"127.0.0.1:{free_port()}" for _ in ports.coordinators]
    options: dict[str, list[str]] = {}
    for kind, clients, listens in (("coordinator", ports.coordinators, own), ("writer", ports.writers, ["127.0.0.1:0"] * 2)):
        issued = authority.issue(kind, [f"{kind}.headgate.internal"])
        options[kind] = ["--tls-cert", str(certificate.cert), "--tls-key", str(certificate.key), "--access", str(access)]
        options[kind] += ["--cluster-cert", str(issued.cert), "--cluster-key", str(issued.key)]
        options[kind] += ["--cluster-ca", str(authority.cert)]
        for number, (port, listen) in enumerate(zip(clients, listens, strict=True), 1):
            options[f"{kind}-{number}"] = ["--listen", f"127.0.0.1:{port}", "--advertise", f"{kind}-{number}.invalid:7070"]
            options[f"{kind}-{number}"] += ["--cluster-listen", listen]
    options["coordinator"] += [*SOON, *PATIENT, "--audit-log", "none"]
    options["writer"] += ["--coordinator", ",".join(own)]
    return options


def on(producers: Producers) -> None:
    """Until each has 500 more rows durable than it had sent when this began."""
    goals = {history.producer: history.attempts[-1].sent + 500 for history in producers.histories()}
    for name, goal in goals.items():
        producers.wait_acked(name, goal, LIMIT_S)


EVENTS: Mapping[str, Callable[[Scene], object]] = {
    "the gateway is killed": lambda scene: scene.gate.restart(),
    "a writer is killed": lambda scene: scene.cluster.restart("writer-1"),
    "a writer drains": lambda scene: (scene.cluster.drain("writer-2"), scene.cluster.start("writer-2")),
    "a coordinator is killed": lambda scene: scene.cluster.restart("coordinator-1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_streams_outlive_a_reload_and_rows_come_through_once_while_gateway_and_services_restart(
    kind: str, tmp_path: Path
) -> None:
    names = ("one", "two", "three")
    with behind_gateway(kind, tmp_path / "scene") as scene:
        with scene.connect() as hg:
            url = hg.create_table("t", SCHEMA, key="id", partition_by="part", buckets=4).info.url
        reached = {"token": TOKEN, "ca": scene.ca, "front": True, "timeout": LIMIT_S}
        with Producers(scene.gate.address, "t", WORKLOAD, tmp_path, rows=0, rate=500, **reached) as producers:
            for name in names:
                producers.start(name)
            on(producers)
            ended = scene.ended_streams()
            scene.gate.reload()
            on(producers)
            assert scene.ended_streams() < ended + len(names), "the reload ended all streams"
            for event in EVENTS.values():
                event(scene)
                on(producers)
            producers.finish(LIMIT_S)
            report = assert_exactly_once(url, producers.histories(), WORKLOAD)
        assert report.entries > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_silent_channel_that_the_gateway_ends_goes_on_with_its_next_rows(kind: str, tmp_path: Path) -> None:
    with behind_gateway(kind, tmp_path / "scene", SILENCE[kind]) as scene, scene.connect() as hg:
        table = hg.create_table("t", SCHEMA, key="id", partition_by="part", buckets=4)
        with table.channel("c") as channel:
            channel.write(WORKLOAD.rows("c", 1, 10, 1), offset=10)
            channel.flush("queryable")
            ended = scene.ended_streams()
            wait_until("the gateway ends the stream", lambda: scene.ended_streams() != ended, LIMIT_S)
            channel.write(WORKLOAD.rows("c", 11, 20, 1), offset=20)
            channel.flush("queryable")
        assert channel.committed_offset == 20
        assert read_merged(table.info.url).num_rows > 0


@pytest.mark.parametrize("kind", slow_but(["envoy"], KINDS))
def test_operators_reach_the_coordinator_that_they_mean_whichever_the_gateway_chooses(kind: str, tmp_path: Path) -> None:
    """They do not say that there is a gateway: the coordinators know."""
    with behind_gateway(kind, tmp_path / "scene", named=True) as scene:
        access = Access([scene.gate.address], LIMIT_S, TOKEN, scene.ca)
        with access.connect() as hg:
            for number in range(4):
                hg.create_table(f"t{number}", SCHEMA, key="id", partition_by="part", exist_ok=True)
        for _ in range(4):
            found = gather(access)
            assert {(each["name"], each["answers"]) for each in found["coordinators"]} == {
                ("coordinator-1", True),
                ("coordinator-2", True),
            }
        for number in range(8):
            asyncio.run(configure(access, f"t{number % 4}", str(10 + number)))


async def configure(access: Access, table: str, value: str) -> None:
    """The table's owner alone does it."""
    async with access.connect_async() as hg:
        answer = await Maintenance(hg, table).configure({"headgate.slice.max.log.files": value})
    assert {each.key: each.value for each in answer.settings}["headgate.slice.max.log.files"] == value
