"""Every method of every service x every kind of caller, against running processes. The methods come from the contracts; the right
that each wants is said here once more, so that a new one without a row fails, and one whose contract says something else.
"""

import asyncio
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

import headgate_proto
from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.access.methods import declared_access
from headgate_runtime.access.rights import Right
from headgate_runtime.errors import from_call
from support.access import access_text, role, token_line
from support.cluster import Cluster
from support.processes import READY_S

UNAUTHENTICATED, DENIED = errors_pb2.CODE_UNAUTHENTICATED, errors_pb2.CODE_PERMISSION_DENIED
ALLOWED = errors_pb2.CODE_UNSPECIFIED
"""Stands for every other answer: the call came to its servicer."""
STATUS = {UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED, DENIED: grpc.StatusCode.PERMISSION_DENIED}
TABLE, OTHER = "matrix", "other"
"""Neither is there, so that a call which is allowed changes nothing."""
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
        "headgate.api.v1.MaintenanceService.Adopt": Row(Right.ADMIN),
        "headgate.api.v1.MaintenanceService.Repair": Row(Right.OPERATE),
        "headgate.api.v1.MaintenanceService.Configure": Row(Right.OPERATE),
        "headgate.api.v1.MaintenanceService.ChangeVersion": Row(Right.ADMIN),
        "headgate.api.v1.MaintenanceService.Slice": Row(Right.OPERATE),
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


def services() -> Iterator[ServiceDescriptor]:
    """Of all contracts."""
    for module in pkgutil.walk_packages(headgate_proto.__path__, "headgate_proto."):
        if module.name.endswith("_pb2"):
            yield from import_module(module.name).DESCRIPTOR.services_by_name.values()


METHODS = {method.full_name: method for service in services() for method in service.methods}


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
    """With their roles. Of each right: one has it alone, one has all others, one has it elsewhere."""
    for right in Right:
        yield f"only-{right}", role(f"only-{right}", right, tables=[TABLE])
        yield f"elsewhere-{right}", role(f"elsewhere-{right}", right, tables=[OTHER])
        others = [other for other in Right if other not in (right, Right.ADMIN)]
        yield f"without-{right}", "" if right is Right.READ else role(f"without-{right}", *others, tables=[TABLE])
    yield "revoked", role("revoked", "admin")
    yield "expired", role("expired", "admin")


def write_file(path: Path, *, revoked: bool) -> None:
    named = dict(principals())
    tokens = {f"{name}-token": name for name in named if name not in ("expired", *(["revoked"] if revoked else []))}
    text = access_text(tokens, *named.values())
    line = token_line("expired-token", "expired", "2020-01-01T00:00:00Z")
    path.write_text(text.replace("[tokens]\n", f"[tokens]\n{line}"), encoding="utf-8")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One token has worked and is revoked."""
    path = tmp_path_factory.mktemp("access") / "access.toml"
    write_file(path, revoked=False)
    flags = ["--access", str(path), "--access-reload", "100ms"]
    with Cluster(
        tmp_path_factory.mktemp("guarded") / "cluster",
        writers=1,
        options={"coordinator": [*flags, "--writer-timeout", "20s"], "writer": flags},
        env={"HEADGATE_CLUSTER_TOKEN": CLUSTER_TOKEN},
    ) as cluster:
        asyncio.run(revoke(cluster, path))
        yield cluster


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


def expected(row: Row) -> dict[str, int]:
    """Token to outcome."""
    strangers = dict.fromkeys(
        ("", "wrong", "ONLY-READ-TOKEN", "only-read-tokenx", "expired-token", "revoked-token"), UNAUTHENTICATED
    )
    if row.right is None:
        return {**strangers, "only-admin-token": DENIED, "only-write-token": DENIED, CLUSTER_TOKEN: ALLOWED}
    return {
        **strangers,
        f"without-{row.right}-token": DENIED,
        f"elsewhere-{row.right}-token": DENIED if row.table else ALLOWED,
        f"only-{row.right}-token": ALLOWED,
        "only-admin-token": ALLOWED,
        CLUSTER_TOKEN: ALLOWED if row.right is Right.READ else DENIED,
    }


# --- calls ---


def put(message: Message, path: Any, value: str) -> Message:
    """Sets the text at the path of fields."""
    inner = message
    for name in path[:-1]:
        inner = getattr(inner, name)
    setattr(inner, path[-1], value)
    return message


def request_of(method: MethodDescriptor) -> Message:
    """About the table, as far as the method is about one."""
    request, declared = GetMessageClass(method.input_type)(), declared_access(method)
    assert declared is not None
    for path, value in ((declared.table, TABLE), (declared.channel, "c")):
        if path:
            put(request, path, value)
    return request


async def code_of(address: str, method: MethodDescriptor, token: str) -> int:
    """UNAUTHENTICATED, DENIED or ALLOWED."""
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    async with grpc.aio.insecure_channel(address) as channel:
        kind = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
        assert method.containing_service is not None
        make: Any = getattr(channel, kind)(
            f"/{method.containing_service.full_name}/{method.name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        request = request_of(method)
        try:
            call = make(iter([request]) if method.client_streaming else request, metadata=metadata)
            if not method.server_streaming:
                await call
                return ALLOWED
            async for answer in call:
                ended = getattr(answer, "ended", None)
                error = getattr(ended, "error", None)
                if isinstance(error, errors_pb2.Error) and error.code in STATUS:
                    return int(error.code)
        except grpc.aio.AioRpcError as failed:
            if failed.details() == "Internal error from Core":
                # grpcio hides the status of a call from whoever writes on it at the moment of its end.
                return await code_of(address, method, token)
            error = from_call(failed)
            if error.code in STATUS and failed.code() is STATUS[error.code]:
                return int(error.code)
            if failed.code() in STATUS.values() or error.code == errors_pb2.CODE_INTERNAL:
                pytest.fail(f"{method.name} answered {failed!r}")
    return ALLOWED


@pytest.mark.parametrize(("part", "name"), MATRIX, ids=str)
async def test_a_method_answers_exactly_those_who_may_call_it(part: str, name: str, guarded: Cluster) -> None:
    wanted = expected(ROWS[part][name])
    found = {token: await code_of(guarded.address_of(part), METHODS[name], token) for token in wanted}
    assert found == wanted
