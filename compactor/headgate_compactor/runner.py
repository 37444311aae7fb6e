"""One attempt at one operation, on a thread: what is asked is read, the slice is merged, what came of it becomes a report.

A thread and not a process: the work looks up after every batch, and stops there when nobody wants it any more.
"""

import json
from collections.abc import Mapping

from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_runtime.logs import get_logger
from headgate_tables.commitlog.slot import stage_folder
from headgate_tables.errors import RetryLater, SyncFailedError, TablesError
from headgate_tables.hudi.definition import Definition, Layout
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse
from headgate_tables.hudi.services.compaction import compact_slice
from headgate_tables.hudi.services.operation import Compacted, Operation
from headgate_tables.hudi.services.settings import TableSettings
from headgate_tables.storage.open import open_store
from headgate_tables.storage.store import Store
from headgate_tables.system import Ids

_log = get_logger()

REMEMBERED = 1000
"""Operations whose outcome is kept: after a takeover the new owner hands out again what the old one had not committed."""


class _GivenUpError(Exception):
    """Nobody wants the attempt any more."""


class Job:
    """One attempt while it runs. Written by its thread; ``give_up`` comes from the event loop's."""

    def __init__(self, order: wire.RunAttempt) -> None:
        self.order = order
        self.rows = 0
        self.bytes = 0
        self.given_up = False

    def give_up(self) -> None:
        """It ends after the batch in hand."""
        self.given_up = True

    def progress(self, rows: int) -> None:
        """Rows written so far."""
        self.rows = rows
        if self.given_up:
            raise _GivenUpError


class Runner:
    """``process``: whose stage folder outputs wait in. Called from several threads."""

    def __init__(self, process: str, storage_options: Mapping[str, str], ids: Ids) -> None:
        self._process = process
        self._options = storage_options
        self._ids = ids
        self._known: dict[tuple[str, str, str], Compacted] = {}

    def run(self, job: Job) -> wire.WorkRequest:
        """The report. Raises SyncFailedError: this process must not write any more (hazard H14)."""
        attempt = job.order.attempt
        try:
            compacted = self._compact(job)
        except _GivenUpError:
            return wire.WorkRequest(returned=wire.AttemptReturned(attempt=attempt))
        except SyncFailedError:
            raise
        except RetryLater as error:
            return _failed(attempt, str(error), wire.FAILURE_KIND_STORE)
        except TablesError as error:
            return _failed(attempt, str(error), wire.FAILURE_KIND_OPERATION)
        except Exception as error:  # noqa: BLE001 - the boundary: it is logged, and the operation is tried again or dropped
            _log.error("operation failed", table=attempt.table, instant=attempt.instant, exc_info=error)
            return _failed(attempt, f"{type(error).__name__}: {error}", wire.FAILURE_KIND_OPERATION)
        return wire.WorkRequest(finished=_finished(attempt, compacted))

    def _compact(self, job: Job) -> Compacted:
        order = job.order
        operation = Operation.decode(json.loads(order.operation))
        store = open_store(order.url, self._options, self._ids)
        key = (order.url, order.attempt.instant, operation.path)
        known = self._known.get(key)
        if known is not None and store.size(operation.path) == known.file.size:
            return known
        definition = Definition.decode(json.loads(order.definition))
        compacted = compact_slice(
            store,
            definition,
            _layout(store, definition),
            operation,
            order.attempt.instant,
            stage=self._stage(store, order.attempt.epoch),
            settings=TableSettings.of(order.settings),
            progress=job.progress,
        )
        self._known[key] = compacted
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return compacted

    def _stage(self, store: Store, epoch: int) -> str:
        return stage_folder(epoch, self._process) if store.stages else ""


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
