"""Brings encoded data files into the store, staged or in place, durable, each with a write status (rules W2, W3, C1)."""

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from headgate_tables.commitlog.records import DataFile
from headgate_tables.errors import CorruptFileError, StoreUnavailableError, TablesError
from headgate_tables.face.files import WriteStat, WriteStatus
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.log.parquet_rows import ParquetLayout
from headgate_tables.hudi.staged_names import staged_path
from headgate_tables.storage.store import Buffers, Outcome, Store

THREADS = 2
_THREADED_ROWS = 20_000
_CREATE_ATTEMPTS = 5

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that is encoded and not yet written. ``log_version`` 0: a base file; ``rows``, ``deletes``: how many."""

    partition: str
    file_id: str
    log_version: int
    name: str
    content: Buffers
    rows: int
    deletes: int


def layout_of(definition: Definition, sorted_by: Sequence[str] = ()) -> ParquetLayout:
    """The layout of all files of one table that a process writes, with statistics of what readers prune by: key, ordering, and
    the columns by which the rows are sorted.
    """
    ordering = [definition.ordering] if definition.ordering else []
    return ParquetLayout(stats=tuple(dict.fromkeys(["_hoodie_record_key", *definition.record_key, *ordering, *sorted_by])))


def encode_all(encode: Callable[[_Item], NewFile], items: Sequence[_Item], *, rows: int, threads: int = THREADS) -> list[NewFile]:
    """``encode`` of each item, on several threads when ``rows``, those of all items, are enough to be worth it."""
    if threads < 2 or rows < _THREADED_ROWS or len(items) < 2:
        return [encode(item) for item in items]
    with ThreadPoolExecutor(threads, thread_name_prefix="headgate-encode") as pool:
        return list(pool.map(encode, items))


def write_files(store: Store, instant: str, stage: str, files: Sequence[NewFile]) -> list[WriteStatus]:
    """One status per file; all are durable when this returns.

    ``stage``: a folder of this process (rule W2), or "" where files are created in place.
    Raises RetryLater, OperatorNeeded, SyncFailedError; then none of the files may ever be committed.
    """
    statuses: list[WriteStatus] = []
    for file in files:
        size = sum(memoryview(piece).nbytes for piece in file.content)
        stat = WriteStat(file.file_id, file.partition, file.name, size, file.rows, file.deletes, file.log_version)
        staged = staged_path(stage, instant, file.partition, file.file_id, file.log_version)
        statuses.append(WriteStatus(stat, DataFile(stat.path, size, _sha256(file.content), staged)))
    writes = [(status.file.stage or status.file.path, file.content) for status, file in zip(statuses, files, strict=True)]
    if stage:
        _stage(store, writes)
    else:
        _create(store, writes, statuses)
    return statuses


def _stage(store: Store, writes: Sequence[tuple[str, Buffers]]) -> None:
    try:
        store.stage(writes)
    except Exception:
        # No status names them yet, so no rollback would remove them, and on a full disk they would keep it full.
        with contextlib.suppress(TablesError):  # the first error is the one to report: it may be a failed sync (hazard H14)
            store.delete(path for path, _ in writes)
        raise


def _create(store: Store, writes: Sequence[tuple[str, Buffers]], statuses: Sequence[WriteStatus]) -> None:
    """In place under names that no other attempt uses (rule W3). A name that is taken must hold our bytes (rule FI3)."""
    pending = list(zip(writes, statuses, strict=True))
    for _ in range(_CREATE_ATTEMPTS):
        outcomes = store.create_all([write for write, _ in pending], durable=True)
        for (write, status), outcome in zip(pending, outcomes, strict=True):
            if outcome is Outcome.EXISTS and _sha256([store.get(write[0])]) != status.file.sha256:
                raise CorruptFileError(
                    f"{write[0]} is taken by other bytes",
                    fix="Roll back; a new transaction gets names of its own. Find out which other program writes here.",
                )
        open_ends = [outcome is Outcome.UNKNOWN for outcome in outcomes]
        pending = [entry for entry, unknown in zip(pending, open_ends, strict=True) if unknown]
        if not pending:
            return
    raise StoreUnavailableError(
        f"the store did not say whether {pending[0][0][0]} was created", fix="Roll back and try again once the store answers."
    )


def _sha256(content: Buffers) -> str:
    digest = hashlib.sha256()
    for piece in content:
        digest.update(piece)
    return digest.hexdigest()
