"""One attempt at one operation, on a thread: what is asked is read, the slice is merged, what came of it becomes a report.

A thread and not a process: the work looks up after every batch, and stops there when nobody wants it any more.
"""

from collections.abc import Mapping

from headgate_compactor.orders import read_definition, read_operation
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_runtime.errors import UnknownMessageError
from headgate_runtime.logs import get_logger
from headgate_tables.errors import CorruptFileError, MissingFileError, ReopenTable, RetryLater, SyncFailedError, TablesError
from headgate_tables.face.operation import Compacted
from headgate_tables.opening import compaction_task, open_folder
from headgate_tables.system import Ids

_log = get_logger()


class _GivenUpError(Exception):
    """Nobody wants the attempt any more."""


class Job:
    """One attempt while it runs. Written by its thread; ``give_up`` comes from the event loop's."""

    def __init__(self, order: wire.RunAttempt) -> None:
        self.order = order
        self.input_bytes = 0
        self.rows = 0
        self.batches = 0
        self.base_rows = 0
        self.given_up = False

    @property
    def bytes(self) -> int:
        """Input bytes dealt with, as far as the rows of the base say: most slices keep about as many."""
        return self.input_bytes * min(self.rows, self.base_rows) // self.base_rows if self.base_rows else 0

    def give_up(self) -> None:
        """It ends after the batch in hand."""
        self.given_up = True

    def progress(self, rows: int) -> None:
        """Rows written so far, after every batch."""
        self.rows = rows
        self.batches += 1
        if self.given_up:
            raise _GivenUpError


class Runner:
    """``process``: whose stage folder outputs wait in. Called from several threads."""

    def __init__(self, process: str, storage_options: Mapping[str, str], ids: Ids) -> None:
        self._process = process
        self._options = storage_options
        self._ids = ids

    def run(self, job: Job) -> wire.WorkRequest:
        """The report. Raises SyncFailedError: this process must not write any more (hazard H14)."""
        attempt = job.order.attempt
        try:
            compacted = self._compact(job)
        except _GivenUpError:
            return wire.WorkRequest(returned=wire.AttemptReturned(attempt=attempt))
        except SyncFailedError:
            raise
        except (RetryLater, ReopenTable) as error:  # deposed: its owner is, and nobody listens any more; or the table is gone
            return _failed(attempt, str(error), wire.FAILURE_KIND_STORE)
        except (CorruptFileError, MissingFileError) as error:
            return _failed(attempt, str(error), wire.FAILURE_KIND_DAMAGE)
        except (TablesError, UnknownMessageError) as error:
            return _failed(attempt, str(error), wire.FAILURE_KIND_OPERATION)
        except Exception as error:  # noqa: BLE001 - the boundary: it is logged, and the operation is tried again or dropped
            _log.error("operation failed", table=attempt.table, instant=attempt.instant, exc_info=error)
            return _failed(attempt, f"{type(error).__name__}: {error}", wire.FAILURE_KIND_OPERATION)
        return wire.WorkRequest(finished=_finished(attempt, compacted))

    def _compact(self, job: Job) -> Compacted:
        order = job.order
        folder = open_folder(order.url, self._options, self._ids)
        operation = read_operation(order.operation)
        task = compaction_task(
            folder,
            read_definition(order.definition),
            operation,
            order.attempt.instant,
            epoch=order.attempt.epoch,
            process=self._process,
            attempt=order.attempt.number,
            settings=order.settings,
        )
        job.input_bytes, job.base_rows = operation.input_bytes, task.base_rows()
        return task.run(job.progress)


def _failed(attempt: wire.Attempt, why: str, kind: "wire.FailureKind.ValueType") -> wire.WorkRequest:
    return wire.WorkRequest(failed=wire.AttemptFailed(attempt=attempt, why=why, kind=kind))


def _finished(attempt: wire.Attempt, compacted: Compacted) -> wire.AttemptFinished:
    return wire.AttemptFinished(
        attempt=attempt,
        size=compacted.file.size,
        sha256=compacted.file.sha256,
        rows=compacted.rows,
        inserts=compacted.inserts,
        updates=compacted.updates,
        deletes=compacted.deletes,
        log_rows=compacted.log_rows,
        log_blocks=compacted.log_blocks,
    )
