"""The owner's side of compaction over real gRPC, on real tables: handing out, reports, loss, failure, leaving, takeover."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from headgate_proto.api.v1 import tables_pb2 as api
from headgate_proto.api.v1.maintenance_pb2 import TruncateRequest
from headgate_proto.api.v1.maintenance_pb2_grpc import MaintenanceServiceStub
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_proto.cluster.v1.compaction_pb2_grpc import CompactionServiceStub
from headgate_proto.cluster.v1.coordination_pb2 import AskCheckpoint
from headgate_proto.serialized import PART_BYTES
from headgate_tables.hudi import open_table
from support.running_coordinator import Running, running_coordinator
from support.scripted_compactor import operation_of, scripted_compactor
from support.scripted_writer import scripted_writer
from support.tables import SCHEMA, notes, rows

T = "t"
OPTIONS: dict[str, Any] = {"partition_by": ["part"], "ordering": "ts", "buckets": 1}
COMMITS = 3
FAST: dict[str, Any] = {"service_interval": 0.05, "compaction_pause": 0.05}


@asynccontextmanager
async def coordinator_with_rows(
    tmp_path: Path, redis: str, *tables: str, parts: tuple[str, ...] = ("p",), **settings: Any
) -> AsyncIterator[Running]:
    """Each table has COMMITS commits: one slice without a base file a partition, which is due for compaction."""
    async with running_coordinator(tmp_path, redis, **{**FAST, **settings}) as coordinator:
        async with scripted_writer(coordinator.address) as writer:
            for name in tables or (T,):
                await coordinator.create(name, SCHEMA, **OPTIONS)
                await writer.order(name, "attach")
                await writer.open(name, "c")
                for number in range(1, COMMITS + 1):
                    for part in parts:
                        entries = ((f"{part}{number}", number, f"n{number}"), (f"{part}0", number, f"n{number}"))
                        writer.take(name, rows(*entries, part=part), "c", number)
                    writer.report(name, ask_checkpoint=AskCheckpoint())
                    await writer.committed(name)
        yield coordinator


async def until_compacted(tmp_path: Path, table: str = T) -> Any:
    while True:
        found = open_table(f"{tmp_path}/{table}")
        if any(commit.action == "commit" for commit in found.commits()):
            return found
        await asyncio.sleep(0.02)


async def test_a_stream_that_begins_without_a_hello_is_refused(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, grpc.aio.insecure_channel(coordinator.address) as channel:
        for first in (wire.WorkRequest(ready=wire.Ready(operations=1)), wire.WorkRequest(hello=wire.CompactorHello(host="h"))):
            call = CompactionServiceStub(channel).Work()
            await call.write(first)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call.read()
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_message_that_is_not_known_ends_a_compactors_stream_in_words(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, grpc.aio.insecure_channel(coordinator.address) as channel:
        call = CompactionServiceStub(channel).Work()
        await call.write(wire.WorkRequest(hello=wire.CompactorHello(process="p", host="h")))
        assert (await call.read()).HasField("welcome")
        await call.write(wire.WorkRequest(ready=wire.Ready(operations=1)))
        while [each.free for each in (await coordinator.tables.Status(api.StatusRequest())).compactors] != [1]:
            await asyncio.sleep(0.02)  # while its welcome is being sent, a stream that ends may not say why
        await call.write(wire.WorkRequest())
        with pytest.raises(grpc.aio.AioRpcError, match="is unknown here"):
            await call.read()


async def test_a_due_slice_is_handed_out_merged_and_committed(tmp_path: Path, redis: str) -> None:
    async with coordinator_with_rows(tmp_path, redis) as coordinator, scripted_compactor(coordinator.address) as compactor:
        before = notes(open_table(f"{tmp_path}/{T}"))
        compactor.ready()
        order = await compactor.run()
        assert (order.attempt.table, order.attempt.epoch, order.attempt.number) == (T, 1, 1)
        assert len(operation_of(order).logs) == COMMITS
        await compactor.finish(order)
        table = await until_compacted(tmp_path)
        [group] = table.file_groups()
        assert group.slices()[-1].base_instant == order.attempt.instant
        assert notes(table) == before
        assert table.verify().ok


async def test_a_log_file_that_no_plan_allows_ends_the_compactors_stream(tmp_path: Path, redis: str) -> None:
    """Such a compactor has copied the base file, and the new slice would lack what its logs say."""
    async with coordinator_with_rows(tmp_path, redis) as coordinator, scripted_compactor(coordinator.address) as compactor:
        compactor.ready()
        report = await compactor.report(await compactor.run())
        report.finished.log.size = 1
        compactor.say(report)
        await compactor.ended.wait()
        assert "the log file of an ordinary compaction is unknown here" in compactor.why


async def test_a_truncation_ends_plans_whose_operations_run_or_wait(tmp_path: Path, redis: str) -> None:
    async with (
        coordinator_with_rows(tmp_path, redis, parts=("p", "q")) as coordinator,
        scripted_compactor(coordinator.address) as compactor,
    ):
        compactor.ready()
        await compactor.run()
        request = TruncateRequest(table=T, whole_table=True)
        assert (await MaintenanceServiceStub(coordinator.channel).Truncate(request)).file_groups == 2
        assert notes(open_table(f"{tmp_path}/{T}")) == {}
        await coordinator.until(T, operations_queued=0)


async def test_status_shows_compactors_and_how_far_operations_are(tmp_path: Path, redis: str) -> None:
    async with (
        coordinator_with_rows(tmp_path, redis, parts=("p", "q")) as coordinator,
        scripted_compactor(coordinator.address) as compactor,
    ):
        compactor.ready()
        order = await compactor.run()
        whole = operation_of(order).input_bytes
        compactor.progress(order, 7, whole // 2)
        while not (operations := (await coordinator.status(T)).operations) or not operations[0].rows_done:
            await asyncio.sleep(0.02)
        [running] = operations
        assert (running.compactor, running.host, running.attempt, running.rows_done) == ("c", "host", 1, 7)
        assert (running.bytes_done, running.of_bytes) == (whole // 2, whole)
        assert running.file_id == operation_of(order).file_id
        status = await coordinator.tables.Status(api.StatusRequest())
        assert [(each.process, each.free, each.running) for each in status.compactors] == [("c", 0, 1)]
        assert status.tables[0].operations_queued == 1


async def test_a_lost_compactors_operation_goes_to_the_next(tmp_path: Path, redis: str) -> None:
    async with coordinator_with_rows(tmp_path, redis) as coordinator:
        async with scripted_compactor(coordinator.address, "one") as one:
            one.ready()
            first = await one.run()
        async with scripted_compactor(coordinator.address, "two") as two:
            two.ready()
            second = await two.run()
            assert second.operation == first.operation
            assert second.attempt.number == 2
            await two.finish(second)
            await until_compacted(tmp_path)


@pytest.mark.slow
async def test_a_compactor_that_falls_silent_is_lost_with_its_operation(tmp_path: Path, redis: str) -> None:
    async with (
        coordinator_with_rows(tmp_path, redis, compactor_timeout=0.5) as coordinator,
        scripted_compactor(coordinator.address, "silent") as silent,
    ):
        silent.ready()
        await silent.run()
        silent.fall_silent()
        await silent.ended.wait()
        assert silent.why == "it was silent for 0.5 s"
        async with scripted_compactor(coordinator.address, "two") as two:
            two.ready()
            assert (await two.run()).attempt.number == 2


async def test_a_late_report_of_a_lost_compactor_is_taken_and_the_newer_attempt_is_dropped(tmp_path: Path, redis: str) -> None:
    """Rule W4: an output in place is right, whoever made it."""
    async with coordinator_with_rows(tmp_path, redis) as coordinator:
        async with scripted_compactor(coordinator.address, "one") as one:
            one.ready()
            report = await one.report(await one.run())
        async with scripted_compactor(coordinator.address, "two") as two:
            two.ready()
            newer = await two.run()
            async with scripted_compactor(coordinator.address, "one") as again:
                again.say(report)
                again.say(report)
                assert await two.drops.get() == newer.attempt
                table = await until_compacted(tmp_path)
                assert len(notes(table)) == COMMITS + 1


async def test_an_operation_that_always_fails_is_left_out_and_the_rest_of_its_plan_is_committed(
    tmp_path: Path, redis: str
) -> None:
    async with (
        coordinator_with_rows(tmp_path, redis, parts=("p", "q")) as coordinator,
        scripted_compactor(coordinator.address) as compactor,
    ):
        before = notes(open_table(f"{tmp_path}/{T}"))
        for number in (1, 2, 3):
            while True:
                compactor.ready()
                order = await compactor.run()
                if operation_of(order).partition == "p":
                    break
                await compactor.finish(order)
            assert order.attempt.number == number
            compactor.fail(order)
        table = await until_compacted(tmp_path)
        slices = {group.partition: group.slices()[-1] for group in table.file_groups()}
        assert slices["q"].base
        assert not slices["p"].base
        assert notes(table) == before
        status = await coordinator.status(T)
        assert "it failed 3 times, the last time because it is broken" in status.alarms[-1]


async def test_a_failure_whose_text_is_above_1_mib_is_taken_and_little_of_the_text_is_kept(tmp_path: Path, redis: str) -> None:
    async with coordinator_with_rows(tmp_path, redis) as coordinator, scripted_compactor(coordinator.address) as compactor:
        for number in (1, 2, 3):
            compactor.ready()
            order = await compactor.run()
            assert order.attempt.number == number
            compactor.fail(order, why="x" * 2 * PART_BYTES)
        while not (found := [each for each in (await coordinator.status(T)).alarms if "xxx" in each]):
            await asyncio.sleep(0.02)
        assert all(len(each) < 5_000 for each in found)


@pytest.mark.slow
async def test_a_store_that_does_not_answer_is_nobodys_failure(tmp_path: Path, redis: str) -> None:
    async with coordinator_with_rows(tmp_path, redis) as coordinator, scripted_compactor(coordinator.address) as compactor:
        for number in range(1, 5):
            compactor.ready()
            order = await compactor.run()
            assert order.attempt.number == number
            compactor.fail(order, wire.FAILURE_KIND_STORE)
        compactor.ready()
        await compactor.finish(await compactor.run())
        await until_compacted(tmp_path)


async def test_one_that_leaves_gets_nothing_more_and_is_released_when_it_has_reported(tmp_path: Path, redis: str) -> None:
    async with (
        coordinator_with_rows(tmp_path, redis, parts=("p", "q")) as coordinator,
        scripted_compactor(coordinator.address, "leaves") as leaves,
    ):
        leaves.ready()
        order = await leaves.run()
        leaves.send(leave=wire.CompactorLeave())
        leaves.ready(5)
        async with scripted_compactor(coordinator.address, "stays") as stays:
            stays.ready()
            other = await stays.run()
            assert other.operation != order.operation
            assert not leaves.released.is_set()
            leaves.give_back(order)
            await leaves.released.wait()
            assert leaves.runs.empty()
            stays.ready()
            assert (await stays.run()).operation == order.operation


async def test_tables_take_turns(tmp_path: Path, redis: str) -> None:
    async with (
        coordinator_with_rows(tmp_path, redis, "t", "u", parts=("p", "q", "r")) as coordinator,
        scripted_compactor(coordinator.address) as compactor,
    ):
        while not all([(await coordinator.status(name)).operations_queued == 3 for name in ("t", "u")]):
            await asyncio.sleep(0.02)
        compactor.ready(4)
        orders = [await compactor.run() for _ in range(4)]
        assert [order.attempt.table for order in orders] in (["t", "u"] * 2, ["u", "t"] * 2)


async def test_operations_go_where_there_is_most_room(tmp_path: Path, redis: str) -> None:
    async with (
        coordinator_with_rows(tmp_path, redis, parts=("p", "q", "r")) as coordinator,
        scripted_compactor(coordinator.address, "small") as small,
        scripted_compactor(coordinator.address, "large") as large,
    ):
        async with scripted_compactor(coordinator.address, "holder") as holder:
            holder.ready(3)
            for _ in range(3):
                await holder.run()
            small.ready(1)
            large.ready(2)
            while sum(each.free for each in (await coordinator.tables.Status(api.StatusRequest())).compactors) < 3:
                await asyncio.sleep(0.02)
        await asyncio.gather(large.run(), large.run(), small.run())


async def test_a_plan_goes_on_after_a_takeover_and_reports_of_the_old_owners_time_count_for_nothing(
    tmp_path: Path, redis: str
) -> None:
    async with (
        coordinator_with_rows(tmp_path, redis, parts=("p", "q")) as first,
        scripted_compactor(first.address) as compactor,
    ):
        compactor.ready()
        old = await compactor.run()
        await first.drain()
        await compactor.ended.wait()
    async with running_coordinator(tmp_path, redis, **FAST) as second, scripted_compactor(second.address) as compactor:
        while (await second.status(T)).operations_queued != 2:
            await asyncio.sleep(0.02)
        compactor.fail(old)
        compactor.say(wire.WorkRequest(finished=wire.AttemptFinished(attempt=old.attempt, size=1, sha256="wrong")))
        compactor.ready(2)
        orders = [await compactor.run(), await compactor.run()]
        assert {(order.attempt.instant, order.attempt.epoch) for order in orders} == {(old.attempt.instant, 2)}
        for order in orders:
            await compactor.finish(order)
        table = await until_compacted(tmp_path)
        assert table.verify().ok
        assert len(notes(table)) == 2 * (COMMITS + 1)


@pytest.mark.slow
async def test_what_does_not_grow_is_given_to_another(tmp_path: Path, redis: str) -> None:
    async with (
        coordinator_with_rows(tmp_path, redis, compaction_timeout=0.5) as coordinator,
        scripted_compactor(coordinator.address, "stuck") as stuck,
        scripted_compactor(coordinator.address, "fresh") as fresh,
    ):
        stuck.ready()
        order = await stuck.run()
        fresh.ready()
        assert await stuck.drops.get() == order.attempt
        again = await fresh.run()
        assert again.operation == order.operation
        await fresh.finish(again)
        await until_compacted(tmp_path)
