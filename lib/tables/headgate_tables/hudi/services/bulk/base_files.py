"""Writes the base files of a bulk load. A footer key holds how many rows and which keys each is made of."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from headgate_tables.arrow import Array, pc
from headgate_tables.errors import CorruptFileError
from headgate_tables.face.settings import TableSettings
from headgate_tables.face.writing import Changes, LoadTask
from headgate_tables.hudi.base_file import WRITE_TOKEN
from headgate_tables.hudi.bloom import DynamicBloomFilter
from headgate_tables.hudi.current_groups import overwriting_id
from headgate_tables.hudi.data_files import layout_of
from headgate_tables.hudi.definition import Definition, avro_schema
from headgate_tables.hudi.log.names import base_name
from headgate_tables.hudi.log.reader import PARQUET_ERRORS
from headgate_tables.hudi.place import Placed, place_upserts
from headgate_tables.hudi.schema.meta_columns import FILE_NAME, attach_meta, sequence_numbers, with_meta
from headgate_tables.hudi.services.bulk.task_files import TaskFile, TaskFiles, slices_in
from headgate_tables.hudi.services.compaction.base_writer import BaseFileWriter
from headgate_tables.hudi.services.compaction.curves import order_of
from headgate_tables.hudi.services.compaction.sorted_writer import ORDER_KEY
from headgate_tables.hudi.services.compaction.stored_output import footer_value
from headgate_tables.storage.store import SpooledBytes, Store

MADE_OF_KEY: Final = "headgate.bulk"


class BulkFiles(TaskFiles):
    """``overwriting``: the files begin new file groups, which replace those of their buckets."""

    def __init__(
        self,
        store: Store,
        definition: Definition,
        task: LoadTask,
        *,
        settings: TableSettings,
        overwriting: bool = False,
    ) -> None:
        super().__init__(store, definition, task)
        self._settings = settings
        self._overwriting = overwriting
        self._row_order = settings.row_order.among(definition.schema.names) if settings.row_order else None
        self._schema = with_meta(definition.schema)
        self._avro = avro_schema(definition, meta_columns=True)

    def _place(self, rows: pa.Table) -> Placed:
        return place_upserts(rows, self._definition)

    def _new_file(self, changes: Changes, first: int) -> TaskFile:
        file_id = self._file_id(changes.partition, changes.bucket)
        return TaskFile.of(file_id, base_name(file_id, WRITE_TOKEN, self._task.instant), 0, changes, first)

    def _file_id(self, partition: str, bucket: int) -> str:
        if self._overwriting:
            return overwriting_id(self._definition, partition, bucket, self._task.instant)
        return self._definition.file_id(partition, bucket)

    def _encode(self, file: TaskFile, to: SpooledBytes) -> None:
        bloom = DynamicBloomFilter(self._settings.bloom_entries, self._settings.bloom_fpp) if self._settings.bloom else None
        # What a layout learns from other files would make the bytes depend on what else the process has written.
        layout = layout_of(self._definition, self._row_order.columns if self._row_order else ())
        writer = BaseFileWriter(to, self._schema, file.name, self._avro, layout, bloom)
        instant = self._task.instant
        for at, rows, keys in slices_in(self._order_of(file), file):
            numbers = sequence_numbers(instant, rows.num_rows, file.first + at, self._task.number)
            stored = attach_meta(rows, keys, numbers, instant=instant, partition=file.partition, file_name=file.name)
            writer.write(stored.drop_columns([FILE_NAME]))
        writer.close({MADE_OF_KEY: file.made_of} | ({ORDER_KEY: str(self._row_order)} if self._row_order else {}))

    def _order_of(self, file: TaskFile) -> Array:
        """By key, or as the settings want it; rows that are equal in that by key, so that any run writes the same bytes."""
        by_key: Array = pc.sort_indices(file.keys)
        if self._row_order is None:
            return by_key
        columns = file.rows.select(self._row_order.columns).combine_chunks().take(by_key)
        sorted_keys: Array = by_key.take(order_of(columns, self._row_order.curve))
        return sorted_keys

    def _made_of(self, source: pa.NativeFile, path: str) -> str:
        try:
            return footer_value(source, path, MADE_OF_KEY)[0]
        except (*PARQUET_ERRORS, KeyError, ValueError) as error:
            raise CorruptFileError(
                f"{path} is taken, and not by a file of a bulk load ({error!r})",
                fix="Another program wrote that name, or the file is damaged. Run the load again.",
            ) from error
