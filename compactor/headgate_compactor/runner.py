"""One attempt at one operation, on a thread: what is asked is read, the slice is merged, what came of it becomes a report.

A thread and not a process: the work looks up after every batch, and stops there when nobody wants it any more.
"""

import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_runtime.logs import get_logger
from headgate_tables.errors import CorruptFileError, MissingFileError, ReopenTable, RetryLater, SyncFailedError, TablesError
from headgate_tables.face.operation import Compacted, Operation
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.definition import Definition, Layout
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse
from headgate_tables.hudi.services.compaction.execution import compact_slice
from headgate_tables.storage.open import open_store
from headgate_tables.storage.store import Store
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
        except TablesError as error:
            return _failed(attempt, str(error), wire.FAILURE_KIND_OPERATION)
        except Exception as error:  # noqa: BLE001 - the boundary: it is logged, and the operation is tried again or dropped
            _log.error("operation failed", table=attempt.table, instant=attempt.instant, exc_info=error)
            return _failed(attempt, f"{type(error).__name__}: {error}", wire.FAILURE_KIND_OPERATION)
        return wire.WorkRequest(finished=_finished(attempt, compacted))

    def _compact(self, job: Job) -> Compacted:
        order = job.order
        store = open_store(order.url, self._options, self._ids, anchor=LOG_LAYOUT.root)
        operation = Operation.decode(json.loads(order.operation))
        job.input_bytes, job.base_rows = operation.input_bytes, _base_rows(store, operation)
        definition = Definition.decode(json.loads(order.definition))
        return compact_slice(
            store,
            definition,
            _layout(store, definition),
            operation,
            order.attempt.instant,
            stage=LOG_LAYOUT.stage_folder(order.attempt.epoch, self._process) if store.stages else "",
            settings=TableSettings.of(order.settings),
            progress=job.progress,
            attempt=str(order.attempt.number),
        )


def _base_rows(store: Store, operation: Operation) -> int:
    """For progress alone; a base file that is missing or damaged is for the merge to find."""
    if operation.base is None:
        return 0
    try:
        with store.open_input(operation.at(operation.base.name)) as file:
            return int(pq.read_metadata(file).num_rows)
    except (OSError, pa.ArrowInvalid):
        return 0


def _layout(store: Store, definition: Definition) -> Layout:
    """As the table's properties say now; before they are there, as they will."""
    try:
        properties = parse(store.get(PROPERTIES_PATH).to_pybytes(), f"{store.url}/{PROPERTIES_PATH}")
    except FileNotFoundError:
        properties = definition.properties()
    return Layout.from_properties(properties, f"{store.url}/{PROPERTIES_PATH}")


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
