"""Writes the log files of a live load: upserts or deletes, beside whatever else is written to the table's file groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from headgate_tables.arrow import Array, pc
from headgate_tables.errors import CorruptFileError
from headgate_tables.face.writing import Changes, LoadTask
from headgate_tables.hudi.base_file import WRITE_TOKEN
from headgate_tables.hudi.data_files import layout_of
from headgate_tables.hudi.definition import Definition, avro_schema
from headgate_tables.hudi.log.names import log_name
from headgate_tables.hudi.log.reader import DeleteBlock, RowsBlock, read_log_file
from headgate_tables.hudi.log.writer import Deleted, encode_log_file
from headgate_tables.hudi.place import Placed, place_deletes, place_upserts
from headgate_tables.hudi.schema.meta_columns import RECORD_KEY, attach_meta, sequence_numbers
from headgate_tables.hudi.services.bulk.task_files import TaskFile, TaskFiles, made_of, one_chunk, slices_in
from headgate_tables.storage.store import SpooledBytes, Store

_VERSION: Final = 1
"""A group gets one log file of the instant, because one task has all rows of it."""


class LogFiles(TaskFiles):
    """``deletes``: the rows are what is to be deleted, and need no more than record key, partition and ordering columns."""

    made_of_all = True

    def __init__(self, store: Store, definition: Definition, task: LoadTask, *, deletes: bool) -> None:
        super().__init__(store, definition, task, deletes=deletes)
        self._avro = avro_schema(definition, meta_columns=True)

    def _place(self, rows: pa.Table) -> Placed:
        return place_deletes(rows, self._definition) if self._deletes else place_upserts(rows, self._definition)

    def _new_file(self, changes: Changes, first: int) -> TaskFile:
        file_id = self._definition.file_id(changes.partition, changes.bucket)
        return TaskFile.of(file_id, log_name(file_id, self._task.instant, _VERSION, WRITE_TOKEN), _VERSION, changes, first)

    def _encode(self, file: TaskFile, to: SpooledBytes) -> None:
        """A block for each slice, so that readers and this task hold one slice at a time."""
        layout = layout_of(self._definition)
        for block in self._blocks(file):
            for piece in encode_log_file(self._task.instant, self._avro, [block], layout):
                to.write(piece)

    def _blocks(self, file: TaskFile) -> Iterator[pa.Table | Deleted]:
        instant, partition, ordering = self._task.instant, file.partition, self._definition.ordering
        for at, rows, keys in slices_in(pc.sort_indices(file.keys), file):
            if self._deletes:
                yield keys, partition, one_chunk(rows[ordering]) if ordering is not None else None
            else:
                numbers = sequence_numbers(instant, rows.num_rows, file.first + at, self._task.number)
                yield attach_meta(rows, keys, numbers, instant=instant, partition=partition, file_name=file.file_id)

    def _made_of(self, source: pa.NativeFile, path: str) -> str:
        blocks = read_log_file(source.read_buffer(), path, lambda instant: instant == self._task.instant, strict=True)
        if any(isinstance(block, DeleteBlock) is not self._deletes for block in blocks):
            raise CorruptFileError(f"{path} is taken, and not by a file of this load", fix="Run the load again.")
        return made_of(*map(_keys_of, blocks))


def _keys_of(block: RowsBlock | DeleteBlock) -> Array:
    return block.rows.keys if isinstance(block, DeleteBlock) else one_chunk(block.read([RECORD_KEY])[RECORD_KEY])
