"""The attacks of `./task bench attacks` on a real writer and a real coordinator, bare and behind Envoy: messages that never end,
held against the bound of docs/operations.md, "What a hostile caller can cost".

Frames of some bytes, which have no bound without Envoy, are left out: tests/deploy/test_envoy.py sends them through it.
"""

import asyncio
import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bench.attacks.attacked import attacked_cluster
from bench.attacks.attacker import ATTACKS, TOKEN, attack_for
from bench.attacks.memory import OF_COORDINATOR, OF_WRITER
from headgate_proto.api.v1 import tables_pb2, tables_pb2_grpc
from headgate_runtime.limits import CALL_BYTES, DoorLimits
from support.certificates import Certificate, self_signed
from support.cluster import Cluster
from support.envoy import sidecar
from support.memory import peak_memory, reset_peak_memory
from support.processes import READY_S

pytestmark = pytest.mark.slow

SECONDS: Final = 3.0
"""Of an attack: an unlimited process takes several hundred MiB in that time."""
_MIB: Final = 1 << 20
LIMIT_MIB: Final = 512
"""The writer's `memory_limit` (attacked.py)."""
_REST: Final = LIMIT_MIB - 192
_DOOR: Final = DoorLimits()
_CALLS: Final = (_DOOR.calls + _DOOR.waiting) * CALL_BYTES // _MIB
MOST_MIB: Final = {
    "coordinator-1": 16 + _CALLS + (_DOOR.read_bytes + _DOOR.stranger_bytes) // _MIB + 70,
    "writer-1": 16 + _REST / 4 + _REST / 8 + 4 + 84 + 70,
}
"""What a process may grow by: the sums of the table in docs/operations.md, for this `memory_limit`; 286 and 294."""
UNBOUNDED: Final = "writer, token, 178 streams in small frames"
PARTS: Final = "writer, token, 120 x 8 MiB in parts"
"""First, as it wants all the places that a principal has: those of streams of another attack become free a little after it."""
BARE: Final = [PARTS, *(name for name in (*OF_WRITER, *OF_COORDINATOR) if name not in (PARTS, UNBOUNDED))]
BEHIND_ENVOY: Final = [PARTS, "coordinator, token, 1,024 streams of 1 MiB"]


class Attacked:
    """``quiet``: bytes of each process before any attack."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.quiet: Mapping[str, int] = {
            part: reset_peak_memory(cluster.part(part).pid) for part in ("writer-1", "coordinator-1")
        }

    async def check(self, name: str, address: str = "", tls: ssl.SSLContext | None = None) -> None:
        """Attacks, sees the process answer its other callers afterwards, and compares its memory with the bound. ``address``: of
        a proxy before it.
        """
        attack = ATTACKS[name]
        own = self.cluster.address_of(attack.part)
        async with asyncio.timeout(READY_S):
            taken = await attack_for(SECONDS, attack, address or own, attack.streams, tls)
            async with grpc.aio.insecure_channel(own) as channel:
                await until_answered(attack.part, channel)
        peak = peak_memory(self.cluster.part(attack.part).pid)
        assert taken > 0
        assert peak - self.quiet[attack.part] < MOST_MIB[attack.part] * _MIB
        assert attack.part == "coordinator-1" or peak < LIMIT_MIB * _MIB


async def until_answered(part: str, channel: grpc.aio.Channel) -> None:
    """What everybody may ask: a coordinator for the tables, a writer for its health. Asked again until it is answered."""
    while True:
        if part == "coordinator-1":
            tables = tables_pb2_grpc.TableServiceStub(channel)
            code = await tables.ListTables(tables_pb2.ListTablesRequest(), metadata=TOKEN).code()
        else:
            code = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest()).code()
        if code is grpc.StatusCode.OK:
            return
        await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """For all attacks one after the other: what an allocator keeps of one counts in the next one's memory, too."""
    with attacked_cluster(tmp_path_factory.mktemp("attacked")) as cluster:
        yield Attacked(cluster)


@pytest.mark.parametrize("name", BARE)
async def test_no_attack_takes_a_bare_process_above_its_documented_bound(name: str, attacked: Attacked) -> None:
    await attacked.check(name)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("trusted") / "certificate")


@pytest.mark.parametrize("name", BEHIND_ENVOY)
async def test_no_attack_through_envoy_takes_a_process_above_its_bound(
    name: str, attacked: Attacked, certificate: Certificate, tmp_path: Path
) -> None:
    trusting = ssl.create_default_context(cafile=str(certificate.cert))
    trusting.set_alpn_protocols(["h2"])
    with sidecar(tmp_path, attacked.cluster.address_of(ATTACKS[name].part), certificate) as address:
        await attacked.check(name, address, trusting)


def test_the_bounds_are_those_that_the_documentation_states() -> None:
    text = (Path(__file__).parents[2] / "docs/operations.md").read_text(encoding="utf-8")
    assert f"coordinator ({MOST_MIB['coordinator-1']} and " in re.sub(r"\s+", " ", text)
    assert f"{MOST_MIB['writer-1']:.0f} MiB with a `memory_limit` of {LIMIT_MIB} MiB" in text
