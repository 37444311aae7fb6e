"""Operations of compaction plans as Spark jobs: the same base files, whatever happens to executors."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_compactor import on_spark
from headgate_compactor.on_spark import SparkRunner
from headgate_compactor.runner import AttemptRunner, RunningAttempt
from headgate_compactor.sizes import input_bytes
from headgate_coordinator.streams.messages import operation_message
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_runtime.definitions import definition_message
from headgate_tables.commitlog.records import DataFile
from headgate_tables.face.operation import Operation, OperationResult, Plan
from headgate_tables.system import SystemIds
from support import compaction_faults
from support.processes import Process
from support.readers import read_by_hudi_rs, read_by_us, without_meta
from support.same_rows import assert_same_rows
from support.scripted_compaction_service import scripted_compaction_service
from support.tracked import Tracked
from support.waiting import wait_until

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64()), ("text", pa.string())])


def row(number: int, ts: int) -> dict[str, Any]:
    return {"id": number, "part": "ab"[number % 2], "ts": ts, "text": f"{number} {ts}"}


@pytest.fixture
def tracked(tmp_path: Path) -> Iterator[Tracked]:
    """Base files, logs over them, and deletes."""
    made = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering="ts")
    made.upsert([row(number, 1) for number in range(4_000)])
    made.table.compact()
    made.upsert([row(number, 2) for number in range(0, 6_000, 3)])
    made.delete([row(number, 3) for number in range(0, 6_000, 7)])
    yield made
    made.table.close()


@pytest.fixture
def runner(spark: Any) -> SparkRunner:
    """In the session of all tests, which stays."""
    del spark
    return SparkRunner("local[2,4]", {}, {}, "", 2)


def orders(tracked: Tracked, plan: Plan) -> list[wire.RunAttempt]:
    table = tracked.table
    assert table.definition is not None
    return [
        wire.RunAttempt(
            attempt=wire.Attempt(table="t", epoch=table.epoch, instant=plan.instant, operation=at, number=1),
            url=table.url,
            definition=definition_message(table.definition),
            operation=operation_message(each),
        )
        for at, each in enumerate(plan.operations)
    ]


def finish(tracked: Tracked, plan: Plan, reports: list[wire.WorkRequest]) -> None:
    results = [result(each, report.finished) for each, report in zip(plan.operations, reports, strict=True)]
    assert tracked.table.finish_plan(plan.instant, results)
    tracked.oracle.compact()
    assert_same_rows(without_meta(read_by_us(tracked.path)), tracked.expected(), "ours")
    assert_same_rows(without_meta(read_by_hudi_rs(tracked.path)), tracked.expected(), "hudi-rs")
    assert tracked.table.verify().ok
    assert not list((tracked.path / ".hoodie/.headgate/stage").rglob(f"{plan.instant}_*"))


def result(operation: Operation, said: wire.AttemptFinished) -> OperationResult:
    file = DataFile(operation.path, said.size, said.sha256, "")
    counts = (said.rows, said.inserts, said.updates, said.deletes, said.log_rows, said.log_blocks)
    return OperationResult(operation, file, *counts)


def planned(tracked: Tracked) -> Plan:
    plan = tracked.table.plan_compaction(forced=True)
    assert plan is not None
    assert len(plan.operations) == 4
    return plan


def test_an_executor_makes_the_bytes_that_a_compactor_makes(tracked: Tracked, runner: SparkRunner) -> None:
    plan = planned(tracked)
    reports = [runner.run(RunningAttempt(order)) for order in orders(tracked, plan)]
    ids = SystemIds()
    again = [AttemptRunner("f" * 32, {}, ids).run(RunningAttempt(order)) for order in orders(tracked, plan)]
    assert [each.finished for each in reports] == [each.finished for each in again], "the second finds the file of the first"
    finish(tracked, plan, reports)


@pytest.mark.parametrize("fault", [compaction_faults.FailsOnce, compaction_faults.DiesOnce, compaction_faults.DiesBehindItsFile])
def test_a_task_that_is_lost_is_run_again(
    tracked: Tracked, runner: SparkRunner, fault: type[on_spark.SparkTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_spark, "SparkTask", fault)
    plan = planned(tracked)
    finish(tracked, plan, [runner.run(RunningAttempt(order)) for order in orders(tracked, plan)])


def test_a_task_that_dies_each_time_is_a_failure_that_counts_against_nobody(
    tracked: Tracked, runner: SparkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_spark, "SparkTask", compaction_faults.Dies)
    plan = planned(tracked)
    order, *_ = orders(tracked, plan)
    failed = runner.run(RunningAttempt(order)).failed
    assert (failed.attempt, failed.kind) == (order.attempt, wire.FAILURE_KIND_STORE)
    assert failed.why.startswith("Spark gave the job up: Job aborted")
    monkeypatch.undo()
    finish(tracked, plan, [runner.run(RunningAttempt(each)) for each in orders(tracked, plan)])


@pytest.mark.parametrize("how", ["damaged", "gone"])
def test_an_input_that_is_damaged_or_gone_is_named_and_other_slices_are_compacted(
    tracked: Tracked, runner: SparkRunner, how: str
) -> None:
    plan = planned(tracked)
    order, *others = sorted(orders(tracked, plan), key=lambda each: each.operation.partition)
    log = tracked.path / "a" / order.operation.logs[0].name
    content = log.read_bytes()
    if how == "gone":
        log.unlink()
    else:
        log.write_bytes(b"x" * len(content))
    failed = runner.run(RunningAttempt(order)).failed
    assert (failed.kind, log.name in failed.why) == (wire.FAILURE_KIND_DAMAGE, True), failed.why
    reports = {each.attempt.operation: runner.run(RunningAttempt(each)) for each in others}
    done = [result(plan.operations[at], report.finished) for at, report in reports.items()]
    dropped = plan.operations[order.attempt.operation]
    assert tracked.table.finish_plan(plan.instant, done, {dropped: failed.why})
    [stuck] = tracked.table.stuck
    assert (stuck.key, stuck.why) == ((dropped.partition, dropped.file_id), failed.why)
    log.write_bytes(content)
    tracked.table.compact()
    tracked.oracle.compact()
    assert_same_rows(without_meta(read_by_hudi_rs(tracked.path)), tracked.expected(), "hudi-rs")
    assert (tracked.table.stuck, tracked.table.verify().ok) == ([], True)


def test_an_attempt_that_nobody_wants_any_more_ends_and_while_it_runs_that_is_seen(
    tracked: Tracked, runner: SparkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_spark, "_BEAT_S", 0.1)
    monkeypatch.setattr(on_spark, "SparkTask", compaction_faults.Sleeps)
    order, *_ = orders(tracked, planned(tracked))
    running = RunningAttempt(order)
    reports: list[wire.WorkRequest] = []
    thread = threading.Thread(target=lambda: reports.append(runner.run(running)))
    thread.start()
    wait_until("Spark works on it", lambda: running.batches > 3, 30)
    running.drop()
    thread.join(30)
    assert [each.returned.attempt for each in reports] == [order.attempt]


def test_two_operations_run_at_a_time(tracked: Tracked, runner: SparkRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_spark, "SparkTask", compaction_faults.Meets)
    plan = planned(tracked)
    pairs = orders(tracked, plan)[:2]
    reports: list[wire.WorkRequest] = []
    threads = [threading.Thread(target=lambda o=order: reports.append(runner.run(RunningAttempt(o)))) for order in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [each.WhichOneof("message") for each in reports] == ["finished", "finished"]


@contextlib.contextmanager
def compactor_process(coordinator: str, above: int, log: Path) -> Iterator[Process]:
    """Of its own, because a killed one takes its session with it."""
    options = ["--coordinator", coordinator, "--spark-master", "local[1]", "--spark-above", f"{above}B"]
    command = [sys.executable, "-m", "headgate_compactor", *options]
    process = Process("compactor", command, log, env={"PYSPARK_PYTHON": sys.executable})
    try:
        yield process
    finally:
        process.kill()


async def test_a_compactor_runs_the_largest_operation_there_and_another_one_does_it_when_it_is_killed(
    tracked: Tracked, tmp_path: Path
) -> None:
    """The killed process is Spark's driver."""
    plan = planned(tracked)
    sizes = [input_bytes(operation_message(each)) for each in plan.operations]
    above, log = sorted(sizes)[-2], tmp_path / "compactor.log"
    async with scripted_compaction_service() as service:
        with compactor_process(service.address, above, log) as first:
            link = await service.compactor()
            link.run(tracked.table, plan, sizes.index(max(sizes)))
            await link.until_at_work()
            first.kill()
        with compactor_process(service.address, above, log):
            link = await service.compactor()
            reports = []
            for at in range(len(plan.operations)):
                link.run(tracked.table, plan, at, number=2)
                reports.append(wire.WorkRequest(finished=await link.report("finished")))
    finish(tracked, plan, reports)
