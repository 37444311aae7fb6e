"""A routed batch of the library becomes data files of one instant."""

from collections.abc import Sequence
from dataclasses import dataclass

from headgate_tables.face.files import WriteStatus
from headgate_tables.hudi.base_file import WRITE_TOKEN, encode_base_file
from headgate_tables.hudi.data_files import NewFile, encode_all, write_files
from headgate_tables.hudi.definition import Definition, avro_schema
from headgate_tables.hudi.log.names import base_name, log_name
from headgate_tables.hudi.log.parquet_rows import ParquetLayout
from headgate_tables.hudi.log.writer import encode_log_file
from headgate_tables.hudi.routing import Group, Routed
from headgate_tables.hudi.schema.meta_columns import attach_meta, sequence_numbers
from headgate_tables.storage.store import Store


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
        self._avro = avro_schema(definition, meta_columns=True)

    def upserts(self, routed: Routed, targets: Sequence[Target]) -> list[WriteStatus]:
        """One file per target with its group's rows. The files are durable when this returns."""
        sequence = sequence_numbers(self._instant, len(routed.keys), self._rows_written + 1)
        self._rows_written += len(routed.keys)

        def encode(target: Target) -> NewFile:
            group = target.group
            length = group.stop - group.start
            keys = routed.keys.slice(group.start, length)
            name = base_name(target.file_id, WRITE_TOKEN, self._instant) if target.is_base else self._log_name(target)
            rows = attach_meta(
                routed.rows.slice(group.start, length),
                keys,
                sequence.slice(group.start, length),
                instant=self._instant,
                partition=group.partition,
                file_name=name if target.is_base else target.file_id,
            )
            content = (
                [encode_base_file(rows, keys, self._layout, self._avro)]
                if target.is_base
                else encode_log_file(self._instant, self._avro, [rows], self._layout)
            )
            return NewFile(group.partition, target.file_id, target.log_version, name, content, length, 0)

        return self._write(encode_all(encode, targets, rows=len(routed.keys)))

    def deletes(self, routed: Routed, targets: Sequence[Target]) -> list[WriteStatus]:
        """One log file per target with one delete block. The files are durable when this returns."""
        ordering = routed.rows[self._definition.ordering].combine_chunks() if self._definition.ordering else None

        def encode(target: Target) -> NewFile:
            group = target.group
            length = group.stop - group.start
            values = ordering.slice(group.start, length) if ordering is not None else None
            deleted = (routed.keys.slice(group.start, length), group.partition, values)
            content = encode_log_file(self._instant, self._avro, [deleted], self._layout)
            return NewFile(group.partition, target.file_id, target.log_version, self._log_name(target), content, 0, length)

        return self._write(encode_all(encode, targets, rows=len(routed.keys)))

    def _log_name(self, target: Target) -> str:
        return log_name(target.file_id, self._instant, target.log_version, WRITE_TOKEN)

    def _write(self, files: Sequence[NewFile]) -> list[WriteStatus]:
        return write_files(self._store, self._instant, self._stage, files)
