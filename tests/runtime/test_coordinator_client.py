"""Streams to coordinators over real gRPC: found, opened again, left (rules RO8, RO9)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

import grpc
import pytest
from grpc.aio._call import StreamStreamCall

from demo.ports import free_port
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1.coordination_pb2_grpc import (
    CoordinationServiceStub,
    add_CoordinationServiceServicer_to_server,
)
from headgate_proto.serialized import PART_BYTES
from headgate_runtime.coordinator_client import CoordinatorClient
from headgate_runtime.coordinator_stream import CoordinatorStream
from headgate_runtime.errors import UnknownMessageError, from_call, rpc_error
from headgate_runtime.lifecycle import StartError
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.world import Clock, World
from support.hand_clock import HandClock
from support.processes import READY_S
from support.scripted_owner import ScriptedOwner, scripted_owner
from support.serving import served

Stream: TypeAlias = CoordinatorStream[wire.ControlRequest, wire.ControlResponse]
Client: TypeAlias = CoordinatorClient[wire.ControlRequest, wire.ControlResponse]


class Handler:
    """Speaks as a writer does, and keeps what happens."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[str] = asyncio.Queue()
        self.ended: asyncio.Queue[Stream] = asyncio.Queue()
        self.load = 0
        self.sent_kinds: list[str] = []
        self.on_unknown: Callable[[], object] = lambda: None

    def open_call(self, channel: grpc.aio.Channel) -> "grpc.aio.StreamStreamCall[wire.ControlRequest, wire.ControlResponse]":
        return CoordinationServiceStub(channel).Control()

    def hello(self) -> wire.ControlRequest:
        return wire.ControlRequest(hello=wire.Hello(process="me", address="me:1"))

    def leave(self) -> wire.ControlRequest:
        return wire.ControlRequest(leave=wire.Leave())

    def heartbeat(self, stream: Stream) -> wire.ControlRequest:
        return wire.ControlRequest(heartbeat=wire.Heartbeat(loads=[wire.Load(table="t", uncommitted_bytes=self.load)]))

    def receive(self, stream: Stream, message: wire.ControlResponse) -> None:
        kind = message.WhichOneof("message")
        if kind == "welcome":
            stream.welcome(message.welcome.heartbeat_ms / 1000)
        elif kind == "released":
            stream.release()
        elif kind is None:
            self.on_unknown()
            raise UnknownMessageError("a message of a coordinator")
        self.received.put_nowait(kind)

    def sent(self, message: wire.ControlRequest) -> None:
        self.sent_kinds.append(message.WhichOneof("message") or "")

    def connected(self, stream: Stream) -> None:
        self.received.put_nowait("connected")

    def disconnected(self, stream: Stream) -> None:
        self.ended.put_nowait(stream)


@asynccontextmanager
async def client_of(*owners: ScriptedOwner, clock: Clock | None = None) -> AsyncIterator[tuple[Client, Handler]]:
    """A client that is told of these coordinators; its block takes no longer than READY_S."""
    handler = Handler()
    addresses = [owner.address for owner in owners]
    client = CoordinatorClient(addresses, handler, ServiceSettings(), clock or World.real().clock)
    async with asyncio.timeout(READY_S), asyncio.TaskGroup() as group:
        running = group.create_task(client.run(), name=f"client {id(client)}")
        yield client, handler
        running.cancel()


async def test_a_stream_begins_with_a_hello_and_counts_from_its_welcome_on() -> None:
    async with scripted_owner() as owner, client_of(owner) as (client, handler):
        assert client.streams == []
        link = await owner.writer()
        assert (link.process, link.address) == ("me", "me:1")
        await client.welcomed.wait()
        assert len(client.streams) == len(client.channels) == 1
        assert [await handler.received.get() for _ in range(2)] == ["connected", "welcome"]
        assert handler.sent_kinds[0] == "hello"


async def test_heartbeats_come_at_each_interval() -> None:
    async with scripted_owner() as owner, client_of(owner):
        link = await owner.writer()
        assert [await link.heartbeats.get() for _ in range(3)] == [{"t": 0}] * 3


async def test_a_heartbeat_that_is_due_does_not_wait_for_the_interval() -> None:
    """On a clock that stands still one comes with the welcome, and no other by itself."""
    async with scripted_owner() as owner, client_of(owner, clock=HandClock()) as (client, handler):
        link = await owner.writer()
        assert await link.heartbeats.get() == {"t": 0}
        handler.load = 7
        client.streams[0].send_heartbeat()
        assert await link.heartbeats.get() == {"t": 7}


async def test_messages_arrive_in_the_order_in_which_they_were_sent() -> None:
    async with scripted_owner() as owner, client_of(owner) as (client, _):
        link = await owner.writer()
        await client.welcomed.wait()
        for number in range(100):
            report = wire.TableReport(table="t", flushed=wire.Flushed(checkpoint=number))
            client.streams[0].send(wire.ControlRequest(table=report))
        assert [(await link.report("flushed")).checkpoint for _ in range(100)] == list(range(100))


async def test_a_message_above_1_mib_arrives_whole_and_counts_as_sent_once_behind_its_last_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    write, sent = StreamStreamCall.write, Handler.sent

    async def noted_write(call: Any, message: wire.ControlRequest) -> None:
        await write(call, message)
        done.append(message.WhichOneof("message") or "")

    def noted_sent(handler: Handler, message: wire.ControlRequest) -> None:
        sent(handler, message)
        done.append(f"sent {message.WhichOneof('message')}")

    monkeypatch.setattr(StreamStreamCall, "write", noted_write)
    monkeypatch.setattr(Handler, "sent", noted_sent)
    async with scripted_owner() as owner, client_of(owner, clock=HandClock()) as (client, _):
        link = await owner.writer()
        assert await link.heartbeats.get() == {"t": 0}
        await client.welcomed.wait()
        done.clear()
        large = wire.Broken(why="x" * 2 * PART_BYTES)
        for each in (large, wire.Broken(why="little")):
            client.streams[0].send(wire.ControlRequest(table=wire.TableReport(table="t", broken=each)))
        assert await link.report("broken") == large
        await link.report("broken")
        assert done[:5] == ["part", "part", "part", "sent table", "table"]


async def test_a_stream_that_breaks_is_opened_again_and_whoever_waits_for_its_release_goes_on() -> None:
    async with scripted_owner() as owner, client_of(owner) as (client, handler):
        link = await owner.writer()
        await client.welcomed.wait()
        [stream] = client.streams
        link.cut()
        assert await handler.ended.get() is stream
        await stream.released.wait()
        again = await owner.writer()
        assert again.process == link.process


async def test_a_message_that_the_handler_does_not_know_ends_the_stream() -> None:
    async with scripted_owner() as owner, client_of(owner) as (_, handler):
        link = await owner.writer()
        link.orders.put_nowait(wire.ControlResponse())
        await link.gone.wait()
        await handler.ended.get()
        await owner.writer()


async def test_a_coordinator_that_asks_for_a_heartbeat_without_a_pause_is_not_obeyed() -> None:
    async with scripted_owner() as owner, client_of(owner) as (_, handler):
        link = await owner.writer()
        link.orders.put_nowait(wire.ControlResponse(welcome=wire.Welcome(heartbeat_ms=0)))
        await link.gone.wait()
        await handler.ended.get()
        await owner.writer()


@pytest.mark.slow
async def test_coordinators_are_found_through_the_others_and_forgotten_when_they_are_gone_from_the_list() -> None:
    async with scripted_owner() as one, client_of(one) as (client, _):
        await one.writer()
        async with scripted_owner() as other:
            one.others = [other.address]
            await other.writer()
            while len(client.streams) < 2:
                await asyncio.sleep(0.01)
        one.others = []
        while len(client.known) > 1:
            await asyncio.sleep(0.01)
        assert client.known == [one.address]


@pytest.mark.slow
async def test_a_coordinator_that_is_dropped_while_it_is_asked_for_the_others_does_not_end_the_client() -> None:
    async with scripted_owner() as one, scripted_owner() as dropped:
        one.others, dropped.others = [dropped.address], [one.address]
        dropped.welcomes = False
        async with client_of(dropped) as (client, _):
            link, stuck = await one.writer(), await dropped.writer()
            one.others = []
            one.asked.clear()
            await one.asked.wait()
            dropped.asked.clear()
            dropped.answers.clear()
            one.welcomes = False
            link.cut()
            await dropped.asked.wait()
            stuck.cut()
            while dropped.address in client.known:
                await asyncio.sleep(0.01)
            dropped.answers.set()
            one.asked.clear()
            one.welcomes = True
            (await one.writer()).cut()
            await one.asked.wait()


@pytest.mark.slow
async def test_a_client_that_leaves_tells_all_coordinators_and_those_that_come_later() -> None:
    async with scripted_owner() as one, scripted_owner() as late, client_of(one) as (client, _):
        link = await one.writer()
        await client.welcomed.wait()
        client.leave()
        leaving = asyncio.ensure_future(client.released())
        await link.left.wait()
        one.others = [late.address]
        later = await late.writer()
        await later.left.wait()
        assert not leaving.done()
        link.release()
        await leaving


async def test_a_client_that_leaves_does_not_wait_for_a_coordinator_that_is_gone() -> None:
    async with scripted_owner() as owner, client_of(owner) as (client, _):
        link = await owner.writer()
        await client.welcomed.wait()
        client.leave()
        leaving = asyncio.ensure_future(client.released())
        await link.left.wait()
        link.cut()
        await leaving


async def test_a_client_that_is_cancelled_in_the_moment_in_which_a_stream_breaks_ends() -> None:
    async with scripted_owner() as owner, client_of(owner) as (client, handler):
        link = await owner.writer()
        await client.welcomed.wait()
        running = client_task(client)
        handler.on_unknown = lambda: asyncio.get_running_loop().call_soon(running.cancel)
        link.orders.put_nowait(wire.ControlResponse())
        done, _ = await asyncio.wait([running], timeout=READY_S)
        if not done:  # the group that waits for it would hang
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
        assert done


def client_task(client: Client) -> "asyncio.Task[None]":
    """The one that ``client_of`` made."""
    [task] = [task for task in asyncio.all_tasks() if task.get_name() == f"client {id(client)}"]
    return task


class Hurried(HandClock):
    """Time goes by as fast as somebody sleeps."""

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0.002)


class Refusing(ScriptedOwner):
    """Welcomes the first ``welcomed`` streams, and refuses all that come behind them."""

    def __init__(self, welcomed: int) -> None:
        super().__init__()
        self.streams = 0
        self._welcomed = welcomed

    async def Control(self, request_iterator: Any, context: Any) -> None:  # type: ignore[override]
        self.streams += 1
        if self.streams > self._welcomed:
            raise rpc_error(errors_pb2.CODE_UNAUTHENTICATED, "this token is not known", "Give another.")
        await context.write(wire.ControlResponse(welcome=wire.Welcome(heartbeat_ms=1000)))


START_TIMEOUT_S = 60.0


@asynccontextmanager
async def starting_client(address: str) -> AsyncIterator[tuple["asyncio.Task[None]", Hurried]]:
    """A client with a time limit for its start, and the clock by which it is measured."""
    clock = Hurried()
    client = CoordinatorClient([address], Handler(), ServiceSettings(), clock, start_timeout=START_TIMEOUT_S)
    async with asyncio.timeout(READY_S):
        running = asyncio.ensure_future(client.run())
        try:
            yield running, clock
        finally:
            running.cancel()
            await asyncio.wait([running])


@asynccontextmanager
async def refused_by(owner: Refusing) -> AsyncIterator[tuple["asyncio.Task[None]", Hurried]]:
    """A starting client that knows this coordinator alone."""
    serving = served(partial(add_CoordinationServiceServicer_to_server, owner))
    async with serving as owner.address, starting_client(owner.address) as started:
        yield started


async def test_a_process_that_coordinators_refuse_from_its_start_ends_with_their_reason() -> None:
    owner = Refusing(0)
    async with refused_by(owner) as (running, clock):
        began = clock.now
        with pytest.raises(ExceptionGroup) as ended:
            await running
        assert clock.now - began >= START_TIMEOUT_S
    [why] = ended.value.exceptions
    assert isinstance(why, StartError)
    reason = "refuses this process, for 60 s now (start_timeout): this token is not known. Give another."
    assert str(why) == f"the coordinator at {owner.address} {reason}"


@pytest.mark.slow
async def test_a_process_that_was_welcomed_once_outlives_every_refusal() -> None:
    """It may hold rows that are being committed, and the refusal may be another's mistake."""
    owner = Refusing(1)
    async with refused_by(owner) as (running, clock):
        began = clock.now
        while owner.streams < 5 or clock.now - began < 3 * START_TIMEOUT_S:
            await asyncio.sleep(0.01)
        assert not running.done()


async def test_a_process_waits_for_a_coordinator_that_is_not_there_for_as_long_as_it_takes() -> None:
    async with starting_client(f"127.0.0.1:{free_port()}") as (running, clock):
        began = clock.now
        while clock.now - began < 3 * START_TIMEOUT_S:
            await asyncio.sleep(0.01)
        assert not running.done()


class RefusingHeartbeats(ScriptedOwner):
    """It welcomes a process, wants a heartbeat each millisecond, and refuses what the process says."""

    async def Control(self, request_iterator: Any, context: Any) -> None:
        await anext(request_iterator)
        await context.write(wire.ControlResponse(welcome=wire.Welcome(heartbeat_ms=1)))
        await anext(request_iterator)
        raise rpc_error(errors_pb2.CODE_INVALID_ARGUMENT, "it is unknown here", "Upgrade.")


async def test_what_a_coordinator_says_against_a_process_is_heard_while_that_sends_heartbeats() -> None:
    async with (
        served(partial(add_CoordinationServiceServicer_to_server, RefusingHeartbeats())) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        for _ in range(20):
            handler = Handler()
            stream: Stream = CoordinatorStream(handler, World.real().clock, lambda _: None)
            for _ in range(1000):  # so that a message is being written whenever the coordinator ends the stream
                stream.send(handler.heartbeat(stream))
            with pytest.raises(ExceptionGroup) as ended:
                await stream.serve(handler.open_call(channel))
            (refused,) = ended.value.exceptions
            assert isinstance(refused, grpc.aio.AioRpcError)
            assert from_call(refused).message == "it is unknown here"
