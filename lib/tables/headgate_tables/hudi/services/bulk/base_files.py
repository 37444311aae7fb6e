"""Writes the base files of a bulk load: one for each bucket of a partition, under a name that instant and group fix (rule FI3).

A task that is run twice, at once or later, meets the file of the other run and reports that one. So every run has to get
the same rows; what it can find out about that, it does: a footer key holds how many rows and which keys the file was made of.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import Array, pc
from headgate_tables.commitlog.records import DataFile
from headgate_tables.errors import CorruptFileError, FixCall, StoreUnavailableError
from headgate_tables.face.files import WriteStat, WriteStatus
from headgate_tables.face.settings import TableSettings
from headgate_tables.face.writing import Changes
from headgate_tables.hudi.base_file import WRITE_TOKEN
from headgate_tables.hudi.bloom import DynamicBloomFilter
from headgate_tables.hudi.current_groups import overwriting_id
from headgate_tables.hudi.data_files import layout_of
from headgate_tables.hudi.definition import Definition, avro_schema
from headgate_tables.hudi.keys.java_hash import java_string_hash
from headgate_tables.hudi.log.names import base_name
from headgate_tables.hudi.log.reader import PARQUET_ERRORS, open_parquet
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.parquet_checks import check_counts
from headgate_tables.hudi.place import place
from headgate_tables.hudi.schema.meta_columns import FILE_NAME, attach_meta, sequence_numbers, with_meta
from headgate_tables.hudi.services.compaction.base_writer import GROUP_BYTES, GROUP_ROWS, BaseFileWriter
from headgate_tables.hudi.services.compaction.stored_output import size_and_digest
from headgate_tables.hudi.sift import sift_batch
from headgate_tables.storage.store import Outcome, Spool, Store

MADE_OF_KEY: Final = "headgate.bulk"


class BulkFiles:
    """Writes files of one bulk load.

    ``process``: names the folder in which the files wait on a local disk; all tasks of the load have the same one, so that
    each file has one name there, too. ``task``: number of the task, which keeps its rows' ``_hoodie_commit_seqno`` apart.
    ``overwriting``: the files begin new file groups, which replace those of their buckets.
    """

    def __init__(
        self,
        store: Store,
        definition: Definition,
        *,
        instant: str,
        epoch: int,
        process: str,
        task: int,
        settings: TableSettings,
        overwriting: bool = False,
    ) -> None:
        self._store = store
        self._definition = definition
        self._instant = instant
        self._stage = LOG_LAYOUT.stage_folder(epoch, process) if store.stages else ""
        self._task = task
        self._settings = settings
        self._overwriting = overwriting
        self._schema = with_meta(definition.schema)
        self._avro = avro_schema(definition, meta_columns=True)

    def write(self, rows: pa.Table, written: Callable[[int], None] = lambda _: None) -> tuple[list[WriteStatus], int]:
        """One durable file for each bucket of ``rows``, sorted by key, with one row of each key; and how many rows were beaten.

        ``rows``: all rows of these buckets, with exactly the table's columns. ``written`` gets the rows of each finished file.
        Raises FixCall for rows that do not fit and for a second run that gets other rows, RetryLater, OperatorNeeded,
        DeposedError when the stage was revoked, SyncFailedError.
        """
        placed = place(rows, None, self._definition)
        given = len(placed.keys)
        del rows
        changes = sift_batch(placed, self._definition.ordering)
        del placed
        changes.sort(key=lambda each: (each.partition, each.bucket))  # so that a row has one sequence number in every run
        statuses: list[WriteStatus] = []
        first = 1
        changes.reverse()
        while changes:
            statuses.append(self._file(changes.pop(), first))
            first += statuses[-1].stat.rows
            written(statuses[-1].stat.rows)
        return statuses, given - (first - 1)

    def _file(self, changes: Changes, first: int) -> WriteStatus:
        file_id = self._file_id(changes.partition, changes.bucket)
        name = base_name(file_id, WRITE_TOKEN, self._instant)
        path = f"{changes.partition}/{name}".lstrip("/")
        staged = f"{self._stage}/{self._instant}_{file_id}_0" if self._stage else ""
        made_of = _made_of(changes)
        made = self._stored(path, staged, made_of) or self._create(path, staged, made_of, changes, name, first)
        stat = WriteStat(file_id, changes.partition, name, made.size, changes.rows.num_rows, 0)
        return WriteStatus(stat, made)

    def _file_id(self, partition: str, bucket: int) -> str:
        if self._overwriting:
            return overwriting_id(self._definition, partition, bucket, self._instant)
        return self._definition.file_id(partition, bucket)

    def _create(self, path: str, staged: str, made_of: str, changes: Changes, name: str, first: int) -> DataFile:
        with self._store.spool(staged or path, "") as spool:
            self._encode(spool, made_of, changes, name, first)
            if spool.create() is Outcome.CREATED:
                return DataFile(path, spool.file.size, spool.file.sha256, staged)
        stored = self._stored(path, staged, made_of)
        if stored is None:
            raise StoreUnavailableError(f"the store did not say whether {path} was created", fix="Run the task again.")
        return stored

    def _encode(self, spool: Spool, made_of: str, changes: Changes, name: str, first: int) -> None:
        bloom = DynamicBloomFilter(self._settings.bloom_entries, self._settings.bloom_fpp) if self._settings.bloom else None
        # What a layout learns from other files would make the bytes depend on what else the process has written.
        layout = layout_of(self._definition)
        writer = BaseFileWriter(spool.file, self._schema, name, self._avro, layout, bloom)
        for at, rows, keys in _sorted_slices(changes):
            numbers = sequence_numbers(self._instant, rows.num_rows, first + at, self._task)
            stored = attach_meta(rows, keys, numbers, instant=self._instant, partition=changes.partition, file_name=name)
            writer.write(stored.drop_columns([FILE_NAME]))
        writer.close({MADE_OF_KEY: made_of})

    def _stored(self, path: str, staged: str, made_of: str) -> DataFile | None:
        """The file that another run of the task has made, read once for its checksum; None when there is none."""
        at = staged or path
        if self._store.size(at) is None:
            return None
        with self._store.open_input(at) as source:
            try:
                file = open_parquet(source)
                check_counts(file, at)
                found = (file.metadata.metadata or {})[MADE_OF_KEY.encode()].decode()
            except (*PARQUET_ERRORS, KeyError, ValueError) as error:
                raise CorruptFileError(
                    f"{at} is taken, and not by a file of a bulk load ({error!r})",
                    fix="Another program wrote that name, or the file is damaged. Run the load again.",
                ) from error
            if found != made_of:
                raise FixCall(
                    f"a second run of a task got other rows for {path} than the first ({made_of} and {found})",
                    fix="Write what gives other rows each time (random values, say) to files first, and load those.",
                )
            size, sha256 = size_and_digest(source)
        return DataFile(path, size, sha256, staged)


def _sorted_slices(changes: Changes) -> Iterator[tuple[int, pa.Table, Array]]:
    """Rows by key, in slices that fit a row group: where each begins, rows, keys."""
    keys = changes.keys.combine_chunks() if isinstance(changes.keys, pa.ChunkedArray) else changes.keys
    rows = changes.rows.combine_chunks()
    order = pc.sort_indices(keys)
    step = max(1, min(GROUP_ROWS, GROUP_BYTES * rows.num_rows // max(1, rows.nbytes)))
    for at in range(0, rows.num_rows, step):
        some = order.slice(at, step)
        yield at, rows.take(some), keys.take(some)


def _made_of(changes: Changes) -> str:
    """Number of rows, and the sum of their keys' hashes, which does not depend on their order."""
    keys = changes.keys.combine_chunks() if isinstance(changes.keys, pa.ChunkedArray) else changes.keys
    total = int(java_string_hash(keys).view(np.uint32).astype(np.uint64).sum())
    return json.dumps({"rows": len(keys), "keys": total}, sort_keys=True)
