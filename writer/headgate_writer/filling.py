"""Counts the nulls that a batch gets where it leaves out what its table has: they cost nothing on the wire, and memory here.

A delete brings its key, partition and ordering alone, a column of Arrow's null type brings no bytes at all, and a struct may lack
fields. A million such rows of 2,000 columns would take 16 GB. Rows may also lack columns that can be null: those of a producer
that opened its channel before the table got the column (rule C7).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

import pyarrow as pa
import pyarrow.types as pat

from headgate_proto.limits import FILLED_BYTES
from headgate_tables.arrow import Field
from headgate_tables.face.definition import Definition
from headgate_writer.admission import Admitted
from headgate_writer.routing import TooLargeError
from headgate_writer.sizes import null_bits


class Filling:
    """Of the batches of one stream. ``definition``: of their table."""

    def __init__(self, definition: Definition) -> None:
        named = {*definition.record_key, *definition.partition_by, definition.ordering}
        self._target = definition.schema
        self._dropped_by_deletes = sum(null_bits(field.type) for field in self._target if field.name not in named)
        self._named = named
        self._schema: pa.Schema | None = None
        self._left_out = 0
        self._absent: list[Field] = []

    def counted(self, admitted: Admitted, schema: pa.Schema | None) -> Admitted:
        """The batch with its nulls counted, and with those of the columns that it lacks. ``schema``: of the stream; the same
        object while it does not change.

        Raises TooLargeError.
        """
        rows = admitted.rows.num_rows
        only_deletes = admitted.deletes is not None and admitted.deletes.true_count == rows
        nbytes = rows * (self._dropped_by_deletes if only_deletes else self._bits(schema)) // 8
        if nbytes > FILLED_BYTES:
            most = max(1, FILLED_BYTES * rows // nbytes)
            raise TooLargeError(
                f"bytes of nulls in what {rows:,} rows leave out of their table's columns: {nbytes:,}, and the limit is "
                f"{FILLED_BYTES:,}",
                fix=f"Send at most {most:,} rows in a batch.",
            )
        filled = admitted.rows if only_deletes else self._filled(admitted.rows)
        if filled is admitted.rows and not nbytes:
            return admitted
        return dataclasses.replace(admitted, rows=filled, nbytes=admitted.nbytes + nbytes)

    def _bits(self, schema: pa.Schema | None) -> int:
        """Of a row that is no delete."""
        if schema is not self._schema:
            given = list(schema or ())
            self._schema, self._left_out = schema, _left_out(given, list(self._target))
            names = {field.name for field in given}
            # The others are refused with the batch: no row may lack them.
            self._absent = [
                field for field in self._target if field.nullable and field.name not in names and field.name not in self._named
            ]
        return self._left_out

    def _filled(self, rows: pa.Table) -> pa.Table:
        if not self._absent:
            return rows
        nulls = [pa.nulls(rows.num_rows, field.type) for field in self._absent]
        return pa.table([*rows.columns, *nulls], schema=pa.schema([*rows.schema, *self._absent]))


def _left_out(given: Collection[Field], target: Collection[Field]) -> int:
    """Bits of a row in the fields of ``target`` that ``given`` lacks, at any depth of structs, or has without a type."""
    types: dict[str, pa.DataType] = {field.name: field.type for field in given}
    return sum(_missing(types.get(field.name, pa.null()), field.type) for field in target)


def _missing(given: pa.DataType, target: pa.DataType) -> int:
    if pat.is_null(given):
        return null_bits(target)
    if isinstance(given, pa.StructType) and isinstance(target, pa.StructType):
        return _left_out(list(given), list(target))
    return 0
