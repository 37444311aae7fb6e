"""A compactor in this process, with real streams and files, under scripted coordinators."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate_compactor.process import Compactor, running, serve
from headgate_compactor.settings import CompactorSettings
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_runtime.world import World
from headgate_tables.commitlog.records import DataFile
from headgate_tables.errors import StoreUnavailableError, SyncFailedError, UnsupportedTableError
from headgate_tables.face.operation import OperationResult, Plan
from headgate_tables.hudi import Table
from headgate_tables.hudi.services.compaction import task
from support.processes import READY_S
from support.scripted_compaction_service import CompactorLink, ScriptedCompactionService, scripted_compaction_service
from support.tables import create, rows


class Gate:
    """In the place of ``compact_slice``'s progress: the merge waits at its first batch until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered = threading.Semaphore(0)
        self.open = threading.Event()
        real = task.compact_slice

        def gated(*arguments: Any, progress: Any, **named: Any) -> OperationResult:
            def wait(done: int) -> None:
                self.entered.release()
                while not self.open.wait(0.01):
                    progress(done)
                progress(done)

            return real(*arguments, progress=wait, **named)

        monkeypatch.setattr(task, "compact_slice", gated)

    async def reached(self) -> None:
        await asyncio.to_thread(self.entered.acquire)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(monkeypatch)
    yield gate
    gate.open.set()


@pytest.fixture
def planned(tmp_path: Path) -> tuple[Table, Plan]:
    """A table with two slices, and a plan for both."""
    table = create(tmp_path)
    for part in ("p", "q"):
        for number in range(2):
            table.upsert(rows(("a", number, f"{part}{number}"), (f"b{number}", 1, "b"), part=part))
    table.own()
    plan = table.plan_compaction(forced=True)
    assert plan is not None
    assert len(plan.operations) >= 2
    return table, plan


def settings(coordinator: ScriptedCompactionService, **more: Any) -> CompactorSettings:
    return CompactorSettings(coordinator=[coordinator.address], **more)


@asynccontextmanager
async def compactor(
    coordinator: ScriptedCompactionService, *, reached: Any = None, **more: Any
) -> AsyncIterator[tuple[Compactor, CompactorLink]]:
    world = World.real() if reached is None else replace(World.real(), reached=reached)
    async with asyncio.timeout(READY_S), running(settings(coordinator, **more), world) as found:
        yield found, await coordinator.compactor()


async def test_it_says_who_it_is_and_how_much_it_takes() -> None:
    async with scripted_compaction_service() as coordinator, compactor(coordinator, operations=3) as (found, link):
        assert link.hello.process == found.process
        assert link.hello.host
        assert await link.capacity.get() == 3
        assert await link.heartbeats.get() == []


async def test_an_operation_is_merged_and_reported_and_the_slot_is_free_again(planned: tuple[Table, Plan]) -> None:
    table, plan = planned
    steps: list[str] = []
    async with scripted_compaction_service() as coordinator, compactor(coordinator, reached=steps.append) as (_, link):
        before = notes_by_part(table)
        finished = []
        for index, operation in enumerate(plan.operations):
            await link.until_slots(1)
            attempt = link.run(table, plan, index)
            assert await link.capacity.get() == 0
            report = await link.report("finished")
            assert report.attempt == attempt
            file = DataFile(operation.path, report.size, report.sha256, "")
            counts = (report.rows, report.inserts, report.updates, report.deletes, report.log_rows, report.log_blocks)
            finished.append(OperationResult(operation, file, *counts))
        assert steps == ["operation_claimed", "output_created"] * len(plan.operations)
    table.finish_plan(plan.instant, finished)
    assert notes_by_part(table) == before
    assert table.verify().ok
    assert all(group.slices()[-1].base for group in table.file_groups())


def notes_by_part(table: Table) -> list[tuple[str, str, str]]:
    return sorted((row["part"], row["id"], row["note"]) for row in table.scan().to_table().to_pylist())


async def test_the_same_operation_for_a_new_owner_gives_the_same_report(planned: tuple[Table, Plan]) -> None:
    """Rule W4: the file that is there is taken, whoever made it."""
    table, plan = planned
    async with scripted_compaction_service() as coordinator, compactor(coordinator) as (_, link):
        link.run(table, plan)
        first = await link.report("finished")
        again = link.run(table, plan, number=2, epoch=table.epoch + 1)
        second = await link.report("finished")
        assert second.attempt == again
        second.attempt.CopyFrom(first.attempt)
        assert second == first


async def test_what_does_not_fit_is_given_back_at_once(planned: tuple[Table, Plan], gate: Gate) -> None:
    table, plan = planned
    async with scripted_compaction_service() as coordinator, compactor(coordinator) as (_, link):
        first = link.run(table, plan, 0)
        await gate.reached()
        surplus = link.run(table, plan, 1)
        assert (await link.report("returned")).attempt == surplus
        gate.open.set()
        assert (await link.report("finished")).attempt == first


async def test_heartbeats_say_how_far_attempts_are(planned: tuple[Table, Plan], gate: Gate) -> None:
    table, plan = planned
    async with scripted_compaction_service() as coordinator, compactor(coordinator) as (_, link):
        attempt = link.run(table, plan)
        await gate.reached()
        progress = await link.until_at_work()
        assert progress.attempt == attempt
        while (later := await link.until_at_work()).batches <= progress.batches:
            pass
        assert later.attempt == attempt


async def test_an_attempt_that_is_dropped_ends_and_leaves_nothing(
    planned: tuple[Table, Plan], gate: Gate, tmp_path: Path
) -> None:
    table, plan = planned
    before = files(tmp_path)
    async with scripted_compaction_service() as coordinator, compactor(coordinator) as (_, link):
        attempt = link.run(table, plan)
        await gate.reached()
        assert files(tmp_path) > before, "its output waits somewhere"
        link.drop(attempt)
        link.drop(wire.Attempt(table="unknown"))
        assert (await link.report("returned")).attempt == attempt
        await link.until_slots(1)
    assert files(tmp_path) == before


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


async def test_a_broken_stream_ends_its_attempts_and_the_compactor_comes_back(planned: tuple[Table, Plan], gate: Gate) -> None:
    table, plan = planned
    async with scripted_compaction_service() as coordinator, compactor(coordinator) as (found, link):
        link.run(table, plan)
        await gate.reached()
        link.cut()
        again = await coordinator.compactor()
        assert again.hello == link.hello
        await again.until_slots(1)
        assert again.reports.empty(), "what belonged to the old stream is not told on the new one"
        assert found.pool.totals.returned == 1


async def test_a_message_that_the_compactor_does_not_know_ends_the_stream_and_its_attempts(
    planned: tuple[Table, Plan], gate: Gate
) -> None:
    table, plan = planned
    async with scripted_compaction_service() as coordinator, compactor(coordinator) as (found, link):
        link.run(table, plan)
        await gate.reached()
        link.orders.put_nowait(wire.WorkResponse())
        again = await coordinator.compactor()
        assert link.gone.is_set()
        await again.until_slots(1)
        assert found.pool.totals.returned == 1


async def test_two_coordinators_share_the_slots(planned: tuple[Table, Plan], gate: Gate) -> None:
    table, plan = planned
    async with scripted_compaction_service() as one, scripted_compaction_service() as other:
        one.others = [other.address]
        async with compactor(one) as (_, link):
            second = await other.compactor()
            await second.until_slots(1)
            attempt = link.run(table, plan)
            await link.until_slots(0)
            await second.until_slots(0)
            await gate.reached()
            assert await second.heartbeats.get() == [], "the other one's attempt is none of its business"
            gate.open.set()
            assert (await link.report("finished")).attempt == attempt
            await second.until_slots(1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (StoreUnavailableError("busy", fix="later"), wire.FAILURE_KIND_STORE),
        (UnsupportedTableError("a newer format", fix="update"), wire.FAILURE_KIND_OPERATION),
        (ValueError("a defect"), wire.FAILURE_KIND_OPERATION),
        (MemoryError(), wire.FAILURE_KIND_OPERATION),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_failures_are_told_apart_by_whose_fault_they_are(
    planned: tuple[Table, Plan], monkeypatch: pytest.MonkeyPatch, error: Exception, kind: Any
) -> None:
    def broken(*arguments: Any, **named: Any) -> OperationResult:
        raise error

    monkeypatch.setattr(task, "compact_slice", broken)
    table, plan = planned
    async with scripted_compaction_service() as coordinator, compactor(coordinator) as (found, link):
        attempt = link.run(table, plan)
        failed = await link.report("failed")
        assert (failed.attempt, failed.kind) == (attempt, kind)
        assert str(error) in failed.why
        assert found.pool.totals.failed == 1


async def test_an_input_that_is_gone_or_an_order_that_makes_no_sense_is_the_operations_fault(
    planned: tuple[Table, Plan], tmp_path: Path
) -> None:
    table, plan = planned
    async with scripted_compaction_service() as coordinator, compactor(coordinator) as (_, link):
        link.run(table, plan, operation=wire.CompactionOperation(partition=""))
        refused = await link.report("failed")
        assert refused.kind == wire.FAILURE_KIND_OPERATION
        assert "an operation of a compaction without `file_id`" in refused.why
        operation = plan.operations[0]
        (tmp_path / "table" / operation.at(operation.logs[0].name)).unlink()
        link.run(table, plan, number=2)
        failed = await link.report("failed")
        assert failed.kind == wire.FAILURE_KIND_DAMAGE
        assert operation.logs[0].name in failed.why


async def test_a_compactor_that_does_not_see_the_table_reports_no_damage(planned: tuple[Table, Plan], tmp_path: Path) -> None:
    """It lacks a mount, say. Others see the files, and an operation that reports damage is never tried again."""
    table, plan = planned
    async with scripted_compaction_service() as coordinator, compactor(coordinator) as (_, link):
        (tmp_path / "table").rename(tmp_path / "away")
        link.run(table, plan)
        failed = await link.report("failed")
        assert failed.kind == wire.FAILURE_KIND_STORE
        assert "holds no table any more" in failed.why
        assert not (tmp_path / "table").exists()
        (tmp_path / "away").rename(tmp_path / "table")
        attempt = link.run(table, plan, number=2)
        assert (await link.report("finished")).attempt == attempt


async def test_a_disk_that_does_not_sync_ends_the_process(planned: tuple[Table, Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    """Hazard H14: what it holds is not known, and nothing that is written now may be trusted."""

    def broken(*arguments: Any, **named: Any) -> OperationResult:
        raise SyncFailedError("fsync failed", fix="look at the disk")

    monkeypatch.setattr(task, "compact_slice", broken)
    table, plan = planned
    async with scripted_compaction_service() as coordinator:
        serving = asyncio.ensure_future(serve(settings(coordinator), asyncio.Event(), World.real()))
        link = await coordinator.compactor()
        link.run(table, plan)
        await asyncio.wait([serving])
        error = serving.exception()
        assert isinstance(error, ExceptionGroup)
        assert error.subgroup(SyncFailedError) is not None
        assert link.reports.empty()


async def test_a_drain_finishes_what_it_can(planned: tuple[Table, Plan], gate: Gate) -> None:
    table, plan = planned
    async with asyncio.timeout(READY_S), scripted_compaction_service() as coordinator:
        drain = asyncio.Event()
        serving = asyncio.ensure_future(serve(settings(coordinator), drain, World.real()))
        link = await coordinator.compactor()
        attempt = link.run(table, plan)
        await gate.reached()
        drain.set()
        await link.leaves.wait()
        late = link.run(table, plan, 1)
        assert (await link.report("returned")).attempt == late
        gate.open.set()
        assert (await link.report("finished")).attempt == attempt
        await link.until_heartbeats(5)  # as far as it knows, the coordinator has not heard the report yet
        link.release()
        await serving


async def test_a_drain_gives_back_what_takes_too_long(planned: tuple[Table, Plan], gate: Gate) -> None:
    table, plan = planned
    async with asyncio.timeout(READY_S), scripted_compaction_service() as coordinator:
        drain = asyncio.Event()
        serving = asyncio.ensure_future(serve(settings(coordinator, drain_timeout=0.05), drain, World.real()))
        link = await coordinator.compactor()
        attempt = link.run(table, plan)
        await gate.reached()
        drain.set()
        assert (await link.report("returned")).attempt == attempt
        link.release()
        await serving


async def test_a_drain_does_not_wait_for_a_coordinator_that_is_gone() -> None:
    async with asyncio.timeout(READY_S), scripted_compaction_service() as coordinator:
        drain = asyncio.Event()
        serving = asyncio.ensure_future(serve(settings(coordinator), drain, World.real()))
        link = await coordinator.compactor()
        await link.until_slots(1)
        drain.set()
        await link.leaves.wait()
        link.cut()
        await serving


@pytest.mark.slow
async def test_a_coordinator_that_is_new_is_found(planned: tuple[Table, Plan]) -> None:
    table, plan = planned
    async with scripted_compaction_service() as one, compactor(one), scripted_compaction_service() as other:
        one.others = [other.address]
        link = await other.compactor()
        link.run(table, plan)
        await link.report("finished")


async def test_settings_want_a_coordinator_with_a_port() -> None:
    for wrong in ([], ["host"]):
        with pytest.raises(ValueError, match=r"coordinator|host:port"):
            CompactorSettings(coordinator=wrong)
