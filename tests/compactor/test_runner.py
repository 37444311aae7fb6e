"""What becomes of an attempt, by what the merge met: as its coordinator hears it. The merge itself is a fake."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headgate_compactor.runner import AttemptRunner, RunningAttempt
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_tables.errors import SyncFailedError, TableDroppedError, TableGoneError, TablesError
from headgate_tables.system import SystemIds

ATTEMPT = wire.Attempt(table="t", epoch=1, instant="1", number=1)


def outcome(monkeypatch: pytest.MonkeyPatch, merge: Callable[[RunningAttempt], None]) -> wire.WorkRequest:
    monkeypatch.setattr(AttemptRunner, "_compact", lambda runner, running: merge(running))
    return AttemptRunner("me", {}, SystemIds()).run(RunningAttempt(wire.RunAttempt(attempt=ATTEMPT)))


def test_an_attempt_that_nobody_wants_any_more_ends_at_its_next_batch_and_has_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def merge(running: RunningAttempt) -> None:
        running.progress(1)
        running.drop()
        running.progress(2)
        raise AssertionError("it went on")

    assert outcome(monkeypatch, merge).returned.attempt == ATTEMPT


def test_a_defect_is_told_as_the_operations_failure_and_the_process_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def merge(running: RunningAttempt) -> None:
        raise ZeroDivisionError("a defect")

    failed = outcome(monkeypatch, merge).failed
    assert (failed.attempt, failed.kind) == (ATTEMPT, wire.FAILURE_KIND_OPERATION)
    assert failed.why == "ZeroDivisionError: a defect"


@pytest.mark.parametrize("error", [TableGoneError, TableDroppedError])
def test_a_table_that_is_not_there_is_no_fault_of_the_operation(
    monkeypatch: pytest.MonkeyPatch, error: type[TablesError]
) -> None:
    def merge(running: RunningAttempt) -> None:
        raise error("the table is not there", fix="look for it")

    failed = outcome(monkeypatch, merge).failed
    assert (failed.attempt, failed.kind) == (ATTEMPT, wire.FAILURE_KIND_STORE)


def test_a_failed_sync_is_nobodys_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hazard H14: the process has to end."""

    def merge(running: RunningAttempt) -> None:
        raise SyncFailedError("fsync failed", fix="look at the disk")

    with pytest.raises(SyncFailedError):
        outcome(monkeypatch, merge)


def test_an_order_for_a_place_outside_of_the_store_is_refused(tmp_path: Path) -> None:
    order = wire.RunAttempt(attempt=ATTEMPT, url="file:///etc")
    runner = AttemptRunner("me", {}, SystemIds(), str(tmp_path))
    failed = runner.run(RunningAttempt(order)).failed
    assert (failed.attempt, failed.kind) == (ATTEMPT, wire.FAILURE_KIND_OPERATION)
    assert failed.why.startswith(f"file:///etc does not lie below {tmp_path}")
