"""A routed batch becomes data files: encoded, staged or created, and described by write statuses."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from headgate_tables.commitlog.publish import DataFile
from headgate_tables.errors import CorruptFileError, StoreUnavailableError
from headgate_tables.hudi.base_file import WRITE_TOKEN, encode_base_file
from headgate_tables.hudi.definition import Definition, avro_schema
from headgate_tables.hudi.log.names import base_name, log_name
from headgate_tables.hudi.log.parquet_rows import ParquetLayout
from headgate_tables.hudi.log.writer import encode_log_file
from headgate_tables.hudi.routing import Group, Routed
from headgate_tables.hudi.schema.meta_columns import attach_meta, sequence_numbers
from headgate_tables.hudi.timeline.commit_metadata import WriteStat
from headgate_tables.storage.store import Buffers, Outcome, Store

THREADS = 2
_THREADED_ROWS = 20_000
_CREATE_ATTEMPTS = 5


Encoded = tuple[str, Buffers]
"""Name and content of one data file."""


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """One data file of an open transaction: what the commit metadata says of it, and where its bytes are."""

    stat: WriteStat
    file: DataFile


@dataclass(frozen=True, slots=True)
class Target:
    """Where one group's rows go: a new base file, or version ``log_version`` of its log files of this instant."""

    group: Group
    file_id: str
    log_version: int

    @property
    def is_base(self) -> bool:
        """Version 0 stands for a base file."""
        return self.log_version == 0


class Flusher:
    """Writes data files of one instant. ``stage``: a folder of this process (rule W2), or "" where files are created in place."""

    def __init__(self, store: Store, definition: Definition, layout: ParquetLayout, instant: str, stage: str) -> None:
        self._store = store
        self._definition = definition
        self._layout = layout
        self._instant = instant
        self._stage = stage
        self._rows_written = 0
        self._files_staged = 0
        self._avro = avro_schema(definition, meta_columns=True)

    def upserts(self, routed: Routed, targets: Sequence[Target]) -> list[WriteStatus]:
        """One file per target with its group's rows. The files are durable when this returns."""
        sequence = sequence_numbers(self._instant, len(routed.keys), self._rows_written + 1)
        self._rows_written += len(routed.keys)

        def encode(target: Target) -> Encoded:
            group = target.group
            length = group.stop - group.start
            keys = routed.keys.slice(group.start, length)
            rows = attach_meta(
                routed.rows.slice(group.start, length),
                keys,
                sequence.slice(group.start, length),
                instant=self._instant,
                partition=group.partition,
                file_name=base_name(target.file_id, WRITE_TOKEN, self._instant) if target.is_base else target.file_id,
            )
            if target.is_base:
                name = base_name(target.file_id, WRITE_TOKEN, self._instant)
                return name, [encode_base_file(rows, keys, self._layout, self._avro)]
            return self._log_name(target), encode_log_file(self._instant, self._avro, rows, self._layout, None)

        contents = self._in_parallel(encode, targets, len(routed.keys))
        return self._write(targets, contents, deletes=False)

    def deletes(self, routed: Routed, targets: Sequence[Target]) -> list[WriteStatus]:
        """One log file per target with one delete block. The files are durable when this returns."""
        ordering = routed.rows[self._definition.ordering].combine_chunks() if self._definition.ordering else None

        def encode(target: Target) -> Encoded:
            group = target.group
            length = group.stop - group.start
            values = ordering.slice(group.start, length) if ordering is not None else None
            deleted = (routed.keys.slice(group.start, length), group.partition, values)
            return self._log_name(target), encode_log_file(self._instant, self._avro, None, self._layout, deleted)

        contents = self._in_parallel(encode, targets, len(routed.keys))
        return self._write(targets, contents, deletes=True)

    def _log_name(self, target: Target) -> str:
        return log_name(target.file_id, self._instant, target.log_version, WRITE_TOKEN)

    @staticmethod
    def _in_parallel(work: Callable[[Target], Encoded], items: Sequence[Target], rows: int) -> list[Encoded]:
        if rows < _THREADED_ROWS or len(items) < 2:
            return [work(item) for item in items]
        with ThreadPoolExecutor(THREADS, thread_name_prefix="headgate-encode") as pool:
            return list(pool.map(work, items))

    def _write(self, targets: Sequence[Target], contents: Sequence[Encoded], *, deletes: bool) -> list[WriteStatus]:
        statuses: list[WriteStatus] = []
        writes: list[tuple[str, Buffers]] = []
        for target, (name, content) in zip(targets, contents, strict=True):
            rows = target.group.stop - target.group.start
            size = sum(memoryview(piece).nbytes for piece in content)
            counts = (0, rows) if deletes else (rows, 0)
            stat = WriteStat(target.file_id, target.group.partition, name, size, *counts, target.log_version)
            stage = f"{self._stage}/{self._instant}_{self._files_staged}" if self._stage else ""
            self._files_staged += 1
            statuses.append(WriteStatus(stat, DataFile(stat.path, size, _sha256(content), stage)))
            writes.append((stage or stat.path, content))
        if self._stage:
            self._stage_all(writes)
        else:
            self._create(writes, statuses)
        return statuses

    def _stage_all(self, writes: Sequence[tuple[str, Buffers]]) -> None:
        try:
            self._store.stage(writes)
        except Exception:
            # No status names them yet, so no rollback would: on a full disk they are what keeps it full.
            self._store.delete(path for path, _ in writes)
            raise

    def _create(self, writes: Sequence[tuple[str, Buffers]], statuses: Sequence[WriteStatus]) -> None:
        """In place under names that no other attempt uses (rule W3). A name that is taken must hold our bytes (rule FI3)."""
        pending = list(zip(writes, statuses, strict=True))
        for _ in range(_CREATE_ATTEMPTS):
            outcomes = self._store.create_all([write for write, _ in pending], durable=True)
            for (write, status), outcome in zip(pending, outcomes, strict=True):
                if outcome is Outcome.EXISTS and _sha256([self._store.get(write[0])]) != status.file.sha256:
                    raise CorruptFileError(
                        f"{write[0]} is taken by other bytes",
                        fix="Roll back; a new transaction gets names of its own. Look who else writes here.",
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
