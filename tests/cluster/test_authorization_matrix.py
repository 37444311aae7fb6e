"""Every method of every service x every kind of caller, against running processes. The methods come from the contracts; the right
that each wants is said here once more, so that a new one without a row fails, and one whose contract says something else.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from headgate_runtime.access.methods import declared_access
from headgate_runtime.access.rights import Right
from support.access import access_text, role, token_line, write_access
from support.certificates import Certificate
from support.certified_clients import CertifiedClients, certified_clients
from support.cluster import Cluster
from support.contracts import METHODS
from support.issuer import Issuer, issuer_beside
from support.outcomes import ALLOWED, DENIED, NOT_SERVED, OTHER, TABLE, UNAUTHENTICATED, bearer, outcome, put
from support.processes import READY_S

CLUSTER_TOKEN = "cluster-token"


class Row(NamedTuple):
    """``right`` None: of a service. ``table``: the request names one."""

    right: Right | None
    table: bool = True


SERVICE = Row(None, table=False)
ROWS = {
    "coordinator-1": {
        "headgate.api.v1.TableService.CreateTable": Row(Right.CREATE),
        "headgate.api.v1.TableService.DescribeTable": Row(Right.READ),
        "headgate.api.v1.TableService.ListTables": Row(Right.READ, table=False),
        "headgate.api.v1.TableService.FindWriters": Row(Right.WRITE, table=False),
        "headgate.api.v1.TableService.Status": Row(Right.READ),
        "headgate.api.v1.MaintenanceService.Compact": Row(Right.OPERATE),
        "headgate.api.v1.MaintenanceService.Clean": Row(Right.OPERATE),
        "headgate.api.v1.MaintenanceService.Archive": Row(Right.OPERATE),
        "headgate.api.v1.MaintenanceService.Savepoint": Row(Right.OPERATE),
        "headgate.api.v1.MaintenanceService.Restore": Row(Right.ADMIN),
        "headgate.api.v1.MaintenanceService.Drop": Row(Right.ADMIN),
        "headgate.api.v1.MaintenanceService.Undrop": Row(Right.ADMIN),
        "headgate.api.v1.MaintenanceService.Rename": Row(Right.ADMIN),
        "headgate.api.v1.MaintenanceService.Adopt": Row(Right.ADMIN),
        "headgate.api.v1.MaintenanceService.Repair": Row(Right.OPERATE),
        "headgate.api.v1.MaintenanceService.Configure": Row(Right.OPERATE),
        "headgate.api.v1.MaintenanceService.Alter": Row(Right.ADMIN),
        "headgate.api.v1.MaintenanceService.Evolve": Row(Right.WRITE),
        "headgate.api.v1.MaintenanceService.Lend": Row(Right.ADMIN),
        "headgate.api.v1.MaintenanceService.Truncate": Row(Right.ADMIN),
        "headgate.api.v1.MaintenanceService.ChangeVersion": Row(Right.ADMIN),
        "headgate.api.v1.MaintenanceService.Slice": Row(Right.OPERATE),
        "headgate.api.v1.MaintenanceService.ListChannels": Row(Right.OPERATE),
        "headgate.cluster.v1.CoordinationService.Control": SERVICE,
        "headgate.cluster.v1.CoordinationService.Members": SERVICE,
        "headgate.cluster.v1.CompactionService.Work": SERVICE,
    },
    "writer-1": {
        "headgate.api.v1.IngestService.Append": Row(Right.WRITE),
        "headgate.cluster.v1.ExchangeService.Exchange": SERVICE,
    },
}
MATRIX = [(part, name) for part, rows in ROWS.items() for name in rows]


def test_every_method_has_a_row_and_its_contract_declares_the_same() -> None:
    rows = {name: row for part in ROWS.values() for name, row in part.items()}
    assert rows.keys() == METHODS.keys(), "give the new method a row here and the option `access` in its contract"
    for name, row in rows.items():
        declared = declared_access(METHODS[name])
        assert declared is not None, name
        assert (declared.right, bool(declared.table)) == row, name


def test_the_fields_that_the_contracts_name_are_texts_of_the_request() -> None:
    for method in METHODS.values():
        declared = declared_access(method)
        assert declared is not None
        for path in filter(None, (declared.table, declared.channel)):
            put(GetMessageClass(method.input_type)(), path, "x")


# --- callers ---


def principals() -> Iterator[tuple[str, str]]:
    """With their roles. Of each right: one has it alone, one has all others, one has it elsewhere, and a group of the issuer has
    it alone.
    """
    for right in Right:
        yield f"only-{right}", role(f"only-{right}", right, tables=[TABLE])
        yield f"elsewhere-{right}", role(f"elsewhere-{right}", right, tables=[OTHER])
        others = [other for other in Right if other not in (right, Right.ADMIN)]
        yield f"without-{right}", "" if right is Right.READ else role(f"without-{right}", *others, tables=[TABLE])
        yield f"@{right}", role(f"@jwt:{right}", right, tables=[TABLE])
        yield f"@elsewhere-{right}", role(f"@jwt:elsewhere-{right}", right, tables=[OTHER])
    yield "revoked", role("revoked", "admin")
    yield "expired", role("expired", "admin")


def write_file(path: Path, *, revoked: bool) -> None:
    named = dict(principals())
    gone = ("expired", *(["revoked"] if revoked else []))
    tokens = {f"{name}-token": name for name in named if name not in gone and not name.startswith("@")}
    text = access_text(tokens, *named.values())
    line = token_line("expired-token", "expired", "2020-01-01T00:00:00Z")
    path.write_text(text.replace("[tokens]\n", f"[tokens]\n{line}"), encoding="utf-8")


def signed(shown: Issuer) -> Mapping[str, str]:
    """Tokens by what they are: "jwt RIGHT" of a member of that group; wrong ones of an administrator but for what is wrong."""
    shown.keys = {"k": ec.generate_private_key(ec.SECP256R1())}
    right = {"iss": shown.address, "aud": "headgate", "sub": "program", "exp": int(time.time()) + 3_600}
    admin = {**right, "groups": ["admin"]}
    groups = [group for each in Right for group in (each, f"elsewhere-{each}")]
    return {
        **{f"jwt {group}": shown.sign("k", {**right, "groups": [group]}) for group in groups},
        "jwt of no group": shown.sign("k", right),
        "jwt with the name of a principal of the file": shown.sign("k", {**right, "sub": "only-admin"}),
        "jwt expired": shown.sign("k", {**admin, "exp": int(time.time()) - 60}),
        "jwt for another audience": shown.sign("k", {**admin, "aud": "other"}),
        "jwt of another issuer": shown.sign("k", {**admin, "iss": "https://issuer.example"}),
        "jwt by another key": shown.sign("k", admin, ec.generate_private_key(ec.SECP256R1())),
    }


@dataclass(frozen=True, slots=True)
class Guarded:
    """``signed``: tokens by what they are; one of the file is what it is called."""

    cluster: Cluster
    signed: Mapping[str, str]

    async def call(self, part: str, name: str, token: str) -> int:
        return await code_of(self.cluster.address_of(part), METHODS[name], self.signed.get(token, token))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One token has worked and is revoked."""
    path = tmp_path_factory.mktemp("access") / "access.toml"
    write_file(path, revoked=False)
    with issuer_beside() as shown:
        tokens = signed(shown)
        flags = ["--access", str(path), "--access-reload", "100ms", "--jwt-issuer", shown.address, "--jwt-audience", "headgate"]
        with Cluster(
            tmp_path_factory.mktemp("guarded") / "cluster",
            writers=1,
            options={"coordinator": [*flags, "--writer-timeout", "20s"], "writer": flags},
            env={"HEADGATE_CLUSTER_TOKEN": CLUSTER_TOKEN},
        ) as cluster:
            asyncio.run(revoke(cluster, path))
            yield Guarded(cluster, tokens)


async def revoke(cluster: Cluster, path: Path) -> None:
    """Returns when both parts refuse the token, which both took before."""
    asked = [(cluster.address_of(part), METHODS[name]) for part, name in MATRIX if name.endswith(("ListTables", "Append"))]
    assert len(asked) == len(ROWS)
    for address, method in asked:
        assert await code_of(address, method, "revoked-token") == ALLOWED
    write_file(path, revoked=True)
    async with asyncio.timeout(READY_S):
        for address, method in asked:
            while await code_of(address, method, "revoked-token") != UNAUTHENTICATED:
                await asyncio.sleep(0.05)


async def code_of(address: str, method: MethodDescriptor, token: str) -> int:
    async with grpc.aio.insecure_channel(address) as channel:
        return await outcome(channel, method, bearer(token))


STRANGERS = (
    "",
    "wrong",
    "ONLY-READ-TOKEN",
    "only-read-tokenx",
    "expired-token",
    "revoked-token",
    "jwt expired",
    "jwt for another audience",
    "jwt of another issuer",
    "jwt by another key",
)


def expected(row: Row) -> dict[str, int]:
    """Token to outcome."""
    outcomes = dict.fromkeys(STRANGERS, UNAUTHENTICATED)
    outcomes |= dict.fromkeys(("jwt of no group", "jwt with the name of a principal of the file"), DENIED)
    if row.right is None:
        denied = ("only-admin-token", "only-write-token", "jwt admin", "jwt write")
        return {**outcomes, **dict.fromkeys(denied, DENIED), CLUSTER_TOKEN: ALLOWED}
    elsewhere = DENIED if row.table else ALLOWED
    return {
        **outcomes,
        f"without-{row.right}-token": DENIED,
        f"elsewhere-{row.right}-token": elsewhere,
        f"jwt elsewhere-{row.right}": elsewhere,
        f"only-{row.right}-token": ALLOWED,
        f"jwt {row.right}": ALLOWED,
        "only-admin-token": ALLOWED,
        "jwt admin": ALLOWED,
        CLUSTER_TOKEN: ALLOWED if row.right is Right.READ else DENIED,
    }


@pytest.mark.parametrize(("part", "name"), MATRIX, ids=str)
async def test_a_method_answers_exactly_those_who_may_call_it(part: str, name: str, guarded: Guarded) -> None:
    wanted = expected(ROWS[part][name])
    found = {token: await guarded.call(part, name, token) for token in wanted}
    assert found == wanted


# --- certificates of clients ---

ADMINS = ("*.example.org", "coordinator.headgate.internal", "a.example.org", "b.example.org")
"""Names with a role that allows everything, of certificates that name nobody all the same."""
NOBODYS = {
    "a wildcard": [ADMINS[0]],
    "of a service": [ADMINS[1]],
    "two names": [*ADMINS[2:]],
}


def of_right(what: str, right: Right) -> str:
    return f"{what}-{right}.example.org"


@dataclass(frozen=True, slots=True)
class Shown:
    """``certificates`` by what they are called here."""

    certified: CertifiedClients
    certificates: Mapping[str, Certificate]

    async def call(self, part: str, name: str, certificate: str, token: str) -> int:
        async with self.certified.channel(part, self.certificates[certificate]) as channel:
            return await outcome(channel, METHODS[name], bearer(token))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    roles = [role("admin", "admin"), *(role(f"cert:{each}", "admin") for each in ADMINS)]
    for right in Right:
        roles.append(role(f"cert:{of_right('only', right)}", right, tables=[TABLE]))
        roles.append(role(f"cert:{of_right('elsewhere', right)}", right, tables=[OTHER]))
    folder = tmp_path_factory.mktemp("shown")
    access = write_access(folder / "access.toml", {"admin-token": "admin", "nobody-token": "nobody"}, *roles)
    names = {name: [name] for right in Right for name in (of_right("only", right), of_right("elsewhere", right))}
    names |= {"no role": ["stranger.example.org"], **NOBODYS}
    with certified_clients(folder, access) as certified:
        numbered = enumerate(names.items())
        yield Shown(certified, {name: certified.clients.issue(str(number), dns) for number, (name, dns) in numbered})


def expected_of_certificates(row: Row) -> dict[tuple[str, str], int]:
    """Certificate and token to outcome."""
    right = Right.READ if row.right is None else row.right
    admin = of_right("only", Right.ADMIN)
    outcomes = {
        **{(name, ""): UNAUTHENTICATED for name in NOBODYS},
        ("no role", ""): DENIED,
        (of_right("elsewhere", right), ""): DENIED if row.table else ALLOWED,
        (of_right("only", right), ""): ALLOWED,
        (admin, ""): ALLOWED,
        (admin, "wrong"): UNAUTHENTICATED,
        (admin, "nobody-token"): DENIED,
        ("no role", "admin-token"): ALLOWED,
        ("two names", "admin-token"): ALLOWED,
    }
    return dict.fromkeys(outcomes, NOT_SERVED) if row.right is None else outcomes


@pytest.mark.parametrize(("part", "name"), MATRIX, ids=str)
async def test_a_method_answers_exactly_those_whom_their_certificates_name(part: str, name: str, shown: Shown) -> None:
    wanted = expected_of_certificates(ROWS[part][name])
    assert {each: await shown.call(part, name, *each) for each in wanted} == wanted
