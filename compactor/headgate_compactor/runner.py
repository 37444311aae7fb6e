"""Runs one attempt at an operation: reads the order, merges the file slice, reports the outcome.

It runs on a thread, not in a process: the merge checks after every batch whether the attempt was dropped.
"""

from collections.abc import Mapping

from headgate_compactor.orders import read_definition, read_operation
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_runtime.errors import UnknownMessageError
from headgate_runtime.logs import get_logger
from headgate_tables.errors import (
    CorruptFileError,
    MissingFileError,
    ReopenTable,
    RetryLater,
    SyncFailedError,
    TableDroppedError,
    TablesError,
)
from headgate_tables.face.operation import OperationResult
from headgate_tables.opening import compaction_task, open_folder
from headgate_tables.system import Ids

_log = get_logger()


class _DroppedError(Exception):
    """The attempt was dropped."""


class RunningAttempt:
    """The state of one attempt. Its own thread writes it; only ``drop`` is called from the event loop."""

    def __init__(self, order: wire.RunAttempt) -> None:
        self.order = order
        self.input_bytes = 0
        self.rows = 0
        self.batches = 0
        self.base_rows = 0
        self.dropped = False

    @property
    def bytes(self) -> int:
        """Input bytes processed so far, an estimate: it assumes that the output has as many rows as the base file."""
        return self.input_bytes * min(self.rows, self.base_rows) // self.base_rows if self.base_rows else 0

    def drop(self) -> None:
        """Ends the attempt after its current batch."""
        self.dropped = True

    def progress(self, rows: int) -> None:
        """Records the rows written so far, after every batch. Raises _DroppedError after ``drop``."""
        self.rows = rows
        self.batches += 1
        if self.dropped:
            raise _DroppedError


class AttemptRunner:
    """Stages outputs in the folder of ``process``. ``run`` is called from several threads."""

    def __init__(self, process: str, storage_options: Mapping[str, str], ids: Ids, store: str = "") -> None:
        self._process = process
        self._options = storage_options
        self._ids = ids
        self._store = store

    def run(self, running: RunningAttempt) -> wire.WorkRequest:
        """Returns the report. Raises SyncFailedError: this process must not write any more (hazard H14)."""
        attempt = running.order.attempt
        try:
            compacted = self._compact(running)
        except _DroppedError:
            return wire.WorkRequest(returned=wire.AttemptReturned(attempt=attempt))
        except SyncFailedError:
            raise
        except (RetryLater, ReopenTable, TableDroppedError) as error:  # the owner was deposed, or the table is gone
            return failed(attempt, str(error), wire.FAILURE_KIND_STORE)
        except (CorruptFileError, MissingFileError) as error:
            return failed(attempt, str(error), wire.FAILURE_KIND_DAMAGE)
        except (TablesError, UnknownMessageError) as error:
            return failed(attempt, str(error), wire.FAILURE_KIND_OPERATION)
        except Exception as error:  # noqa: BLE001 - the boundary: it is logged, and the operation is tried again or dropped
            _log.error("operation failed", table=attempt.table, instant=attempt.instant, exc_info=error)
            return failed(attempt, f"{type(error).__name__}: {error}", wire.FAILURE_KIND_OPERATION)
        return wire.WorkRequest(finished=_finished(attempt, compacted))

    def _compact(self, running: RunningAttempt) -> OperationResult:
        order = running.order
        folder = open_folder(order.url, self._options, self._ids, self._store)
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
        running.input_bytes, running.base_rows = operation.input_bytes, task.base_rows()
        return task.run(running.progress)


def failed(attempt: wire.Attempt, why: str, kind: "wire.FailureKind.ValueType") -> wire.WorkRequest:
    """The report of a failure."""
    return wire.WorkRequest(failed=wire.AttemptFailed(attempt=attempt, why=why, kind=kind))


def _finished(attempt: wire.Attempt, compacted: OperationResult) -> wire.AttemptFinished:
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
        log=wire.CreatedFile(size=compacted.log.size, sha256=compacted.log.sha256) if compacted.log is not None else None,
    )
