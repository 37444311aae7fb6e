"""Control streams: the registration of writers (rule RO8), their orders (rule RO9), leaving, and writers that misbehave."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import grpc
import pytest

from headgate_coordinator.streams import writers as sessions
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.api.v1 import tables_pb2 as api
from headgate_proto.api.v1.parts_pb2 import Part
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1.coordination_pb2_grpc import CoordinationServiceStub
from headgate_proto.serialized import PART_BYTES, in_parts
from headgate_runtime.errors import from_call
from support.running_coordinator import running_coordinator
from support.scripted_writer import scripted_writer
from support.tables import SCHEMA, rows

T = "t"
OPTIONS = {"partition_by": ["part"], "ordering": "ts", "buckets": 2}


async def test_a_stream_that_begins_without_a_hello_is_refused(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, grpc.aio.insecure_channel(coordinator.address) as channel:
        for first in (wire.ControlRequest(heartbeat=wire.Heartbeat()), wire.ControlRequest(hello=wire.Hello(process="p"))):
            call = CoordinationServiceStub(channel).Control()
            await call.write(first)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call.read()
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_writer_that_falls_silent_is_lost_and_its_stream_is_cut(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis, writer_timeout=0.5) as coordinator:
        await coordinator.create(T, SCHEMA, **OPTIONS)
        async with scripted_writer(coordinator.address) as writer:
            await writer.order(T, "attach")
            writer.fall_silent()
            await writer.ended.wait()
            assert writer.why == "it was silent for 0.5 s"
        assert (await coordinator.until(T, generation=2)).state == "owned"
        assert not (await coordinator.tables.FindWriters(api.FindWritersRequest())).addresses


async def test_a_cut_stream_aborts_the_checkpoints_of_all_its_tables(tmp_path: Path, redis: str) -> None:
    async with (
        running_coordinator(tmp_path, redis) as coordinator,
        scripted_writer(coordinator.address, address="w:1") as stays,
    ):
        for name in ("t", "u"):
            await coordinator.create(name, SCHEMA, **OPTIONS)
            await stays.order(name, "attach")
        async with scripted_writer(coordinator.address, address="w:2") as goes:
            for name in ("t", "u"):
                await goes.order(name, "attach")
        for name in ("t", "u"):
            attach = await stays.order(name, "attach")
            assert stays.pair(name) == (1, 2)
            assert [member.process for member in attach.membership.members] == [stays.process]


async def test_a_writer_that_says_hello_again_is_a_new_registration(tmp_path: Path, redis: str) -> None:
    async with (
        running_coordinator(tmp_path, redis) as coordinator,
        scripted_writer(coordinator.address, process="p") as before,
    ):
        await coordinator.create(T, SCHEMA, **OPTIONS)
        await before.order(T, "attach")
        async with scripted_writer(coordinator.address, process="p") as again:
            await before.ended.wait()
            await again.order(T, "attach")
            assert again.pair(T) == (1, 2)
            answer = await coordinator.tables.Status(api.StatusRequest())
            assert [writer.process for writer in answer.writers] == ["p"]


async def test_another_process_at_the_same_address_means_that_the_first_is_dead(tmp_path: Path, redis: str) -> None:
    async with (
        running_coordinator(tmp_path, redis) as coordinator,
        scripted_writer(coordinator.address, process="old", address="w:1") as old,
    ):
        await coordinator.create(T, SCHEMA, **OPTIONS)
        await old.order(T, "attach")
        async with scripted_writer(coordinator.address, process="new", address="w:1") as new:
            await old.ended.wait()
            await new.order(T, "attach")
            answer = await coordinator.tables.Status(api.StatusRequest())
            assert [writer.process for writer in answer.writers] == ["new"]


async def test_a_leaving_writer_is_released_when_no_table_needs_it(tmp_path: Path, redis: str) -> None:
    async with (
        running_coordinator(tmp_path, redis) as coordinator,
        scripted_writer(coordinator.address, address="w:1") as stays,
        scripted_writer(coordinator.address, address="w:2") as leaves,
    ):
        for name in ("t", "u"):
            await coordinator.create(name, SCHEMA, **OPTIONS)
            await asyncio.gather(stays.order(name, "attach"), leaves.order(name, "attach"))
        await leaves.open("t", "c")
        leaves.take("t", rows(("a", 1, "x")), "c", 1)
        leaves.send(leave=wire.Leave())
        await leaves.order("t", "detach")
        await leaves.order("u", "detach")
        await leaves.released.wait()
        grant = await stays.open("t", "c", incarnation=1)
        assert grant.committed_offset == 1, "what it had taken is committed before it is let go"
        assert stays.pair("t") == stays.pair("u") == (1, 1)


async def test_a_leaving_writer_without_a_table_is_released_at_once(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        writer.send(leave=wire.Leave())
        await writer.released.wait()
        await coordinator.create(T, SCHEMA, **OPTIONS)
        await coordinator.until(T, state="owned")
        assert writer.waiting(T, "attach") == 0


async def test_writers_are_found_by_load_and_leaving_ones_are_not(tmp_path: Path, redis: str) -> None:
    async with (
        running_coordinator(tmp_path, redis, checkpoint_interval=60.0) as coordinator,
        scripted_writer(coordinator.address, address="busy:1", beats=False) as busy,
        scripted_writer(coordinator.address, address="free:1", beats=False),
        scripted_writer(coordinator.address, address="gone:1", beats=False) as leaves,
    ):
        busy.send(heartbeat=wire.Heartbeat(loads=[wire.Load(table="any", uncommitted_bytes=10)]))
        leaves.send(leave=wire.Leave())
        await leaves.released.wait()
        while not any(writer.uncommitted_bytes for writer in (await coordinator.tables.Status(api.StatusRequest())).writers):
            await asyncio.sleep(0.02)
        found = await coordinator.tables.FindWriters(api.FindWritersRequest())
        assert list(found.addresses) == ["free:1", "busy:1"]


async def test_the_lags_of_channels_are_those_of_the_last_heartbeats(tmp_path: Path, redis: str) -> None:
    async with (
        running_coordinator(tmp_path, redis, checkpoint_interval=60.0) as coordinator,
        scripted_writer(coordinator.address, address="one:1", beats=False) as one,
        scripted_writer(coordinator.address, address="other:1", beats=False) as other,
    ):
        await coordinator.create(T, SCHEMA, **OPTIONS)
        await one.order(T, "attach")
        await other.order(T, "attach")
        one.send(heartbeat=wire.Heartbeat(loads=[wire.Load(table=T, uncommitted_bytes=10, lags={"a": 7, "b": 3})]))
        await coordinator.until(T, lag=7, waiting_seconds=lambda seconds: seconds > 0)
        other.send(heartbeat=wire.Heartbeat(loads=[wire.Load(table=T, uncommitted_bytes=10, lags={"c": 9})]))
        await coordinator.until(T, lag=9)
        one.send(heartbeat=wire.Heartbeat(loads=[wire.Load(table=T, uncommitted_bytes=0)]))
        other.send(heartbeat=wire.Heartbeat(loads=[wire.Load(table=T, uncommitted_bytes=0)]))
        await coordinator.until(T, lag=0, waiting_seconds=0)


@pytest.mark.parametrize(
    "message",
    [
        wire.ControlRequest(),
        wire.ControlRequest(hello=wire.Hello(process="again", address="w:1")),
        wire.ControlRequest(table=wire.TableReport(table=T, epoch=1, generation=1)),
    ],
)
async def test_what_a_service_of_another_version_says_ends_its_stream_in_words(
    tmp_path: Path, redis: str, message: wire.ControlRequest
) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        await coordinator.create(T, SCHEMA, **OPTIONS)
        await writer.order(T, "attach")
        writer._outbox.put_nowait(message)
        await writer.ended.wait()
        assert "is unknown here: bring all services of the cluster to the same version" in writer.why
        assert (await coordinator.until(T, generation=2)).state == "owned", "what the writer had is given up"


async def test_a_number_out_of_range_ends_the_stream_with_its_range(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        await coordinator.create(T, SCHEMA, **OPTIONS)
        await writer.order(T, "attach")
        writer.send(heartbeat=wire.Heartbeat(loads=[wire.Load(table=T, uncommitted_bytes=2**42 + 1)]))
        await writer.ended.wait()
        assert "`Load.uncommitted_bytes` is 4398046511105, and has to lie between 0 and 4398046511104" in writer.why
        assert (await coordinator.until(T, generation=2)).state == "owned", "what the writer had is given up"


async def test_what_is_said_under_another_pair_counts_for_nothing(tmp_path: Path, redis: str) -> None:
    """Rule RO2; but an open is answered, lest its client waits for nothing."""
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        await coordinator.create(T, SCHEMA, **OPTIONS)
        await writer.order(T, "attach")
        for pair in ((7, 1), (1, 7)):
            writer.report(T, pair=pair, ask_instant=wire.AskInstant(checkpoint=1))
            writer.report(T, pair=pair, broken=wire.Broken(why="not of now"))
        writer.report(T, pair=(7, 1), open=wire.OpenRequest(request=1, channel="c"))
        refused = await writer.order(T, "open_refused")
        assert refused.request == 1
        await writer.open(T, "c")
        assert writer.waiting(T, "instant") == 0
        assert (await coordinator.status(T)).generation == 1


async def test_a_writer_that_does_not_read_is_cut_off_and_others_notice_nothing(
    tmp_path: Path, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "QUEUED_ORDERS", 50)
    async with (
        running_coordinator(tmp_path, redis) as coordinator,
        scripted_writer(coordinator.address, address="w:1") as other,
        grpc.aio.insecure_channel(coordinator.address) as channel,
    ):
        await coordinator.create(T, SCHEMA, **OPTIONS)
        await other.order(T, "attach")
        deaf = CoordinationServiceStub(channel).Control()
        await deaf.write(wire.ControlRequest(hello=wire.Hello(process="deaf", address="w:2")))
        assert len((await other.order(T, "barrier")).next.members) == 2
        asking = asyncio.ensure_future(_ask(deaf, wire.TableReport(table="x" * 10_000, open=wire.OpenRequest(channel="c"))))
        attach = await other.order(T, "attach")
        assert [member.process for member in attach.membership.members] == [other.process]
        await other.open(T, "c")
        deaf.cancel()
        await asyncio.wait([asking])


async def _ask(call: Any, report: wire.TableReport) -> None:
    """Again and again, reading no answer, until nobody takes it."""
    with contextlib.suppress(asyncio.InvalidStateError, asyncio.CancelledError, grpc.aio.AioRpcError):
        while True:
            await call.write(wire.ControlRequest(table=report))


async def test_a_message_in_parts_is_taken_as_one(tmp_path: Path, redis: str) -> None:
    report = wire.TableReport(table="not here", open=wire.OpenRequest(request=7, channel="c" * (2 * PART_BYTES)))
    async with running_coordinator(tmp_path, redis) as coordinator, grpc.aio.insecure_channel(coordinator.address) as channel:
        call = CoordinationServiceStub(channel).Control()
        await call.write(wire.ControlRequest(hello=wire.Hello(process="p", address="w:1")))
        parts = list(in_parts(wire.ControlRequest(table=report)))
        assert len(parts) == 3
        for each in parts:
            await call.write(each)
        assert (await call.read()).WhichOneof("message") == "welcome"
        assert (await call.read()).table.open_refused.request == 7


async def test_a_writer_that_is_slow_to_send_a_large_message_is_not_silent(tmp_path: Path, redis: str) -> None:
    report = wire.TableReport(table="not here", open=wire.OpenRequest(request=7, channel="c" * (29 * PART_BYTES)))
    async with (
        running_coordinator(tmp_path, redis, writer_timeout=2.5) as coordinator,
        grpc.aio.insecure_channel(coordinator.address) as channel,
    ):
        call = CoordinationServiceStub(channel).Control()
        await call.write(wire.ControlRequest(hello=wire.Hello(process="p", address="w:1")))
        for each in in_parts(wire.ControlRequest(table=report)):
            await asyncio.sleep(0.1)  # thirty times: longer than the timeout in all
            await call.write(each)
        assert (await call.read()).WhichOneof("message") == "welcome"
        assert (await call.read()).table.open_refused.request == 7


async def test_a_message_that_says_it_is_larger_than_any_report_ends_the_stream_unread(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, grpc.aio.insecure_channel(coordinator.address) as channel:
        call = CoordinationServiceStub(channel).Control()
        await call.write(wire.ControlRequest(hello=wire.Hello(process="p", address="w:1")))
        await call.read()
        await call.write(wire.ControlRequest(part=Part(content=b"x", request_bytes=(64 << 20) + 1)))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call.read()
        assert from_call(refused.value).code == errors_pb2.CODE_TOO_LARGE


async def test_members_are_all_living_coordinators(tmp_path: Path, redis: str) -> None:
    async with (
        running_coordinator(tmp_path, redis) as one,
        running_coordinator(tmp_path, redis) as other,
        grpc.aio.insecure_channel(one.address) as channel,
    ):
        members = CoordinationServiceStub(channel).Members
        while len((await members(wire.MembersRequest())).addresses) < 2:
            await asyncio.sleep(0.02)
        assert set((await members(wire.MembersRequest())).addresses) == {one.address, other.address}
