"""Every method of every service x every kind of service in a certificate, against the second port of running processes."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.ports import free_port
from headgate_proto.handshake import FORWARDED as FORWARDED_HEADER
from headgate_runtime.channels import connect
from headgate_runtime.peers import ServiceKind
from headgate_runtime.settings import ServiceSettings
from support.access import role, write_access
from support.called_by import CALLED_BY, FORWARDED
from support.certificates import Authority, Certificate
from support.cluster import Cluster
from support.contracts import METHODS
from support.outcomes import ALLOWED, DENIED, NOT_SERVED, UNAUTHENTICATED, bearer, outcome

DOMAIN = "headgate.internal"
NAMES = {
    "coordinator": [f"coordinator.{DOMAIN}"],
    "writer": [f"writer.{DOMAIN}"],
    "one writer": [f"writer-7.writer.{DOMAIN}"],
    "compactor": [f"compactor.{DOMAIN}"],
    "other": [f"other.{DOMAIN}"],
}
"""Of certificates, by what they are called here."""
SERVICE_KINDS = {
    "coordinator": ServiceKind.COORDINATOR,
    "writer": ServiceKind.WRITER,
    "one writer": ServiceKind.WRITER,
    "compactor": ServiceKind.COMPACTOR,
}
FOR_A_CLIENT = ((FORWARDED_HEADER, "ipv4:192.0.2.1:1"),)
"""Of a call that a coordinator passes on."""
READABLE = {"headgate.api.v1.TableService.DescribeTable", "headgate.api.v1.TableService.Status"}
"""What services may do themselves: read. The rest of what a coordinator passes on is the client's right, and not its own."""
SERVED = [
    (part, name)
    for part, services in {
        "coordinator-1": ("api.v1.TableService", "api.v1.MaintenanceService", "cluster.v1.Coord", "cluster.v1.Compaction"),
        "writer-1": ("cluster.v1.Exchange",),
    }.items()
    for name in METHODS
    if name.startswith(tuple(f"headgate.{service}" for service in services))
]


@dataclass(frozen=True, slots=True)
class Certified:
    """``addresses``: the second ports of coordinator and writer."""

    authority: Authority
    addresses: Mapping[str, str]
    certificates: Mapping[str, Certificate]

    async def call(self, part: str, name: str, caller: str, *, token: str = "", passed_on: bool = False) -> int:
        """What the method answers a caller with that certificate."""
        own = self.certificates[caller]
        files = {"cluster_ca": self.authority.cert, "cluster_cert": own.cert, "cluster_key": own.key}
        settings = ServiceSettings(**{key: str(path) for key, path in files.items()}, cluster_listen="127.0.0.1:0")
        async with connect(self.addresses[part], settings, ServiceKind(part.partition("-")[0])) as channel:
            return await outcome(channel, METHODS[name], (*bearer(token), *(FOR_A_CLIENT if passed_on else ())))


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Certified]:
    folder: Path = tmp_path_factory.mktemp("certified")
    authority = Authority(folder / "authority")
    certificates = {name: authority.issue(name, dns) for name, dns in NAMES.items()}
    admin = {"admin-token": "admin", "nobody-token": "nobody"}
    access = write_access(folder / "access.toml", admin, role("admin", "admin"))
    addresses = {part: f"127.0.0.1:{free_port()}" for part in ("coordinator-1", "writer-1")}
    options: dict[str, list[str]] = {}
    for kind in ("coordinator", "writer"):
        own = certificates[kind]
        options[kind] = ["--access", str(access), "--cluster-listen", addresses[f"{kind}-1"]]
        options[kind] += ["--cluster-cert", str(own.cert), "--cluster-key", str(own.key), "--cluster-ca", str(authority.cert)]
    options["coordinator"] += ["--writer-timeout", "20s"]
    options["writer"] += ["--coordinator", addresses["coordinator-1"]]
    with Cluster(folder / "cluster", writers=1, options=options) as cluster:
        assert cluster.address_of("writer-1") not in addresses.values()
        yield Certified(authority, addresses, certificates)


def expected(name: str, caller: str) -> int:
    """Of a call that a service makes for itself."""
    if caller not in SERVICE_KINDS:
        return UNAUTHENTICATED
    may = SERVICE_KINDS[caller] in CALLED_BY[name]
    return ALLOWED if may and (name in READABLE or ".cluster." in name) else DENIED


@pytest.mark.parametrize(("part", "name"), SERVED, ids=str)
async def test_a_method_answers_exactly_the_roles_that_may_call_it(part: str, name: str, certified: Certified) -> None:
    found = {caller: await certified.call(part, name, caller) for caller in NAMES}
    assert found == {caller: expected(name, caller) for caller in NAMES}


@pytest.mark.parametrize("name", FORWARDED)
async def test_what_is_passed_on_has_the_clients_right_and_comes_from_coordinators_alone(name: str, certified: Certified) -> None:
    """A client's token makes no other service a coordinator, and a coordinator without one is nobody."""

    async def passed_on(caller: str, token: str) -> int:
        return await certified.call("coordinator-1", name, caller, token=token, passed_on=True)

    assert await passed_on("coordinator", "admin-token") == ALLOWED
    assert await passed_on("coordinator", "nobody-token") == DENIED
    assert await passed_on("coordinator", "wrong") == await passed_on("coordinator", "") == UNAUTHENTICATED
    others = [caller for caller in NAMES if caller != "coordinator"]
    for token in ("admin-token", "nobody-token"):  # their own right, whosever token they send
        found = [await passed_on(caller, token) for caller in others]
        assert found == [expected(name, caller) for caller in others]


async def test_methods_of_clients_are_not_served_on_a_writers_second_port(certified: Certified) -> None:
    rest = [name for name in METHODS if ("writer-1", name) not in SERVED]
    found = await asyncio.gather(*(certified.call("writer-1", name, "writer") for name in rest))
    assert set(found) == {NOT_SERVED}


def test_every_method_is_called_somewhere() -> None:
    assert {name for _, name in SERVED} | {"headgate.api.v1.IngestService.Append"} == CALLED_BY.keys() == METHODS.keys()
