"""Calls with signed tokens: they are known from the first one on, have the roles of the access file, and end with the token."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from headgate_proto.api.v1 import errors_pb2, tables_pb2, tables_pb2_grpc
from headgate_runtime.access.control import AccessControl
from headgate_runtime.access.identity import Credentials, Identity
from headgate_runtime.access.rights import Right
from headgate_runtime.grpc_server import Server, principal
from headgate_runtime.settings import ServiceSettings
from support.access import access_text, role
from support.issuer import Issuer, answer, issuer
from support.sleeps import Sleeps


class Tables(tables_pb2_grpc.TableServiceServicer):
    async def DescribeTable(self, request: Any, context: Any) -> Any:
        return tables_pb2.DescribeTableResponse(table=tables_pb2.TableDescription(name=principal(context)))


@pytest.fixture
async def shown() -> AsyncIterator[Issuer]:
    async with issuer() as made:
        made.keys = {"k": ec.generate_private_key(ec.SECP256R1())}
        yield made


@pytest.fixture
def settings(shown: Issuer, tmp_path: Path) -> ServiceSettings:
    path = tmp_path / "access.toml"
    path.write_text(access_text({"t": "loader"}, role("loader", "admin"), role("@jwt:ingest", "write", tables=["raw_*"])))
    return ServiceSettings(access=str(path), cluster_token="c", jwt_issuer=shown.address, jwt_audience="headgate")


def token(shown: Issuer, clock: Sleeps, **claims: object) -> str:
    exp = clock.now_ms() // 1000 + 60
    return shown.sign("k", {"iss": shown.address, "aud": "headgate", "sub": "loader", "exp": exp, **claims})


async def describe(channel: grpc.aio.Channel, table: str, bearer: str) -> str:
    request = tables_pb2.DescribeTableRequest(name=table)
    answered = await tables_pb2_grpc.TableServiceStub(channel).DescribeTable(
        request, metadata=[("authorization", f"Bearer {bearer}")]
    )
    return answered.table.name


async def test_a_server_knows_the_issuers_keys_before_its_first_call(shown: Issuer, settings: ServiceSettings) -> None:
    clock = Sleeps()
    server = Server(settings, clock=clock)
    tables_pb2_grpc.add_TableServiceServicer_to_server(Tables(), server.grpc)
    address = await server.start()
    try:
        async with grpc.aio.insecure_channel(address) as channel:
            member = token(shown, clock, groups=["ingest"])
            assert await describe(channel, "raw_1", member) == "jwt:loader"
            for table, bearer, code in (
                ("other", member, grpc.StatusCode.PERMISSION_DENIED),
                ("raw_1", token(shown, clock), grpc.StatusCode.PERMISSION_DENIED),  # not the file's loader
                ("raw_1", token(shown, clock, groups=["ingest"], aud="others"), grpc.StatusCode.UNAUTHENTICATED),
            ):
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await describe(channel, table, bearer)
                assert refused.value.code() == code
    finally:
        await server.stop(0)


async def test_a_server_starts_and_says_so_when_the_issuer_does_not_answer(shown: Issuer, settings: ServiceSettings) -> None:
    shown.answer = lambda request: answer(request, 503, b"")
    server = Server(settings, clock=Sleeps())
    await server.start()
    try:
        [alarm] = server.access.alarms
        assert shown.address in alarm
    finally:
        await server.stop(0)


async def test_what_runs_ends_with_its_token(shown: Issuer, settings: ServiceSettings) -> None:
    clock = Sleeps()
    control = AccessControl(settings, clock)
    await control.begin()
    found = control.authenticate(Credentials(f"Bearer {token(shown, clock, groups=['ingest'])}"), Right.WRITE)
    assert isinstance(found, Identity)
    running = asyncio.create_task(control.run())
    try:
        ended: list[errors_pb2.Error] = []
        with control.ended_without_right(found, Right.WRITE, "raw_1", "c", ended.append):
            sleeps = dict([await clock.asleep.get() for _ in range(2)])
            sleeps[settings.access_reload].set()
            _, over = await clock.asleep.get()
            assert ended == []
            clock.ahead_ms = 80_000
            over.set()
            await clock.asleep.get()
            [error] = ended
            assert error.code == errors_pb2.CODE_UNAUTHENTICATED
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"jwt_audience": ""}, "jwt_issuer wants jwt_audience"),
        ({"access": ""}, "jwt_issuer wants jwt_audience"),
        ({"jwt_issuer": "http://issuer.example"}, "jwt_issuer is no https:// address"),
        ({"jwt_keys": "http://issuer.example/keys"}, "jwt_keys is no https:// address"),
    ],
)
def test_settings_that_would_take_others_tokens_are_refused(others: dict[str, str], message: str) -> None:
    right = {"jwt_issuer": "https://issuer.example", "jwt_audience": "headgate", "access": "f", "cluster_token": "c"}
    assert ServiceSettings(**right).jwt_prefix == "jwt:"  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        ServiceSettings(**{**right, **others})  # type: ignore[arg-type]
