"""Answers to refused calls wait when a caller gets too many of them; those of others, and answers of another kind, do not."""

import asyncio
import contextlib
import weakref
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.door import Door
from headgate_runtime.errors import RpcError, from_call, rpc_error
from headgate_runtime.health import LIVE
from headgate_runtime.limits import DoorLimits
from headgate_runtime.tarpit import Tarpit
from support.door import Served, bearing, describe, serving
from support.hand_clock import HandClock
from support.processes import READY_S

DESCRIBE = "/headgate.api.v1.TableService/DescribeTable"


class Holding(HandClock):
    """Those who wait for their refusal, a second, wait for ``over``, and ``waiting`` says so; all others wait for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = asyncio.Event()
        self.over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds == 1:
            self.waiting.set()
            await self.over.wait()
        else:
            await super().sleep(seconds)


def apart(served: Served) -> grpc.aio.Channel:
    """A client with a connection of its own: channels of one process to one address share theirs."""
    return grpc.aio.insecure_channel(served.address, options=[("grpc.use_local_subchannel_pool", 1)])


def broken(channel: grpc.aio.Channel, name: str) -> Any:
    """A call that is refused: its request is none."""
    return channel.stream_stream(DESCRIBE)(iter([b"\xff"]), metadata=bearing(name))


async def refused(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await asyncio.wait_for(call.read(), READY_S)
    return failed.value


async def code(call: Any) -> "errors_pb2.Code.ValueType":
    return from_call(await refused(call)).code


async def begun_to_wait(clock: Holding, call: "asyncio.Future[Any]") -> None:
    """Until the call's refusal waits; fails when it is answered instead."""
    waiting = asyncio.ensure_future(clock.waiting.wait())
    await asyncio.wait({call, waiting}, return_when=asyncio.FIRST_COMPLETED)
    assert waiting.done()
    assert not call.done()


async def test_one_refusal_too_many_waits_and_neither_its_callers_other_calls_nor_those_of_others_do(tmp_path: Path) -> None:
    clock = Holding()
    async with serving(tmp_path, DoorLimits(), clock, refusals=1) as served, served.client() as channel:
        assert await code(broken(channel, "alice")) == errors_pb2.CODE_INVALID_ARGUMENT
        held = asyncio.ensure_future(code(broken(channel, "alice")))
        await begun_to_wait(clock, held)
        assert await describe(channel, "alice") == "alice"
        assert await code(broken(channel, "bob")) == errors_pb2.CODE_INVALID_ARGUMENT
        assert not held.done()
        clock.over.set()
        assert await held == errors_pb2.CODE_INVALID_ARGUMENT


async def test_a_call_that_waits_for_its_refusal_has_its_place_among_the_callers_calls(tmp_path: Path) -> None:
    clock = Holding()
    async with serving(tmp_path, DoorLimits(calls=1), clock, refusals=1) as served, served.client() as channel:
        await code(broken(channel, "alice"))
        held = asyncio.ensure_future(code(broken(channel, "alice")))
        await begun_to_wait(clock, held)
        assert await code(broken(channel, "bob")) == errors_pb2.CODE_OVERLOADED
        held.cancel()


@pytest.mark.parametrize(
    ("path", "status"),
    [(DESCRIBE, grpc.StatusCode.UNAUTHENTICATED), ("/headgate.api.v1.TableService/None", grpc.StatusCode.UNIMPLEMENTED)],
    ids=["without a token", "of a method that is not there"],
)
async def test_a_flood_of_strangers_waits_for_its_refusals_and_no_client_waits_with_it(
    path: str, status: grpc.StatusCode, tmp_path: Path
) -> None:
    clock = Holding()
    async with serving(tmp_path, DoorLimits(), clock, refusals=1) as served, served.client() as channel, apart(served) as other:
        assert (await refused(channel.stream_stream(path)())).code() is status
        held = asyncio.ensure_future(refused(other.stream_stream(path)()))
        await begun_to_wait(clock, held)
        assert await describe(channel, "alice") == "alice"
        assert not held.done()
        clock.over.set()
        assert (await held).code() is status


async def test_a_flood_of_health_checks_waits_and_a_probe_on_a_connection_of_its_own_does_not(tmp_path: Path) -> None:
    clock = Holding()
    async with serving(tmp_path, DoorLimits(), clock, refusals=1) as served, served.client() as flood, apart(served) as probe:
        check = health_pb2_grpc.HealthStub(flood).Check
        await check(health_pb2.HealthCheckRequest(service=LIVE))
        held = asyncio.ensure_future(check(health_pb2.HealthCheckRequest(service=LIVE)))
        await begun_to_wait(clock, held)
        await asyncio.wait_for(health_pb2_grpc.HealthStub(probe).Check(health_pb2.HealthCheckRequest(service=LIVE)), READY_S)
        assert not held.done()
        clock.over.set()
        await held


async def test_a_call_that_is_one_too_many_of_its_caller_waits_for_its_refusal_and_others_get_the_places(tmp_path: Path) -> None:
    clock = Holding()
    async with serving(tmp_path, DoorLimits(calls=2), clock, refusals=1) as served, served.client() as channel:
        stream: Any = channel.stream_stream("/headgate.api.v1.IngestService/Append")(metadata=bearing("alice"))
        await stream.initial_metadata()
        assert await code(broken(channel, "alice")) == errors_pb2.CODE_OVERLOADED
        held = asyncio.ensure_future(code(broken(channel, "alice")))
        await begun_to_wait(clock, held)
        assert await describe(channel, "bob") == "bob"
        clock.over.set()
        assert await held == errors_pb2.CODE_OVERLOADED


class Request:
    """Can be watched."""


class Refusing:
    """A service with one door, at which one refusal is free, and whose clock ends no wait."""

    def __init__(self, error: "errors_pb2.Code.ValueType") -> None:
        self.clock = Holding()
        self.requests: list[weakref.ref[Request]] = []
        self._error = error
        door = Door(DoorLimits(), lambda _context: "ann", lambda *_: contextlib.nullcontext(), Tarpit(self.clock, 1, 1))
        self.call: Any = door.serve(grpc.stream_stream_rpc_method_handler(self._refuse), "/s/Method").stream_stream

    async def _refuse(self, _requests: object, _context: object) -> None:
        request = Request()
        self.requests.append(weakref.ref(request))
        raise rpc_error(self._error, "no", "Stop.")


@pytest.mark.parametrize(
    "error",
    [errors_pb2.CODE_SCHEMA, errors_pb2.CODE_PERMISSION_DENIED, errors_pb2.CODE_OVERLOADED],
    ids=["a wrong call", "a missing right", "a limit"],
)
async def test_what_waits_for_its_refusal_keeps_nothing_of_its_request(error: "errors_pb2.Code.ValueType") -> None:
    refusing = Refusing(error)
    with pytest.raises(RpcError):
        await refusing.call(None, None)
    held = asyncio.ensure_future(refusing.call(None, None))
    await begun_to_wait(refusing.clock, held)
    assert refusing.requests[-1]() is None
    refusing.clock.over.set()
    with pytest.raises(RpcError):
        await held


@pytest.mark.parametrize("error", [errors_pb2.CODE_UNAVAILABLE, errors_pb2.CODE_REWOUND, errors_pb2.CODE_NOT_OWNER])
async def test_what_is_no_fault_of_the_caller_is_answered_at_once(error: "errors_pb2.Code.ValueType") -> None:
    refusing = Refusing(error)
    waiting = asyncio.ensure_future(refusing.clock.waiting.wait())
    for _ in range(10):
        call = asyncio.ensure_future(refusing.call(None, None))
        await asyncio.wait({call, waiting}, return_when=asyncio.FIRST_COMPLETED)
        assert call.done()
        assert isinstance(call.exception(), RpcError)
    waiting.cancel()
