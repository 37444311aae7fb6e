"""Counts the nulls that a batch gets where it leaves out what its table has: they cost nothing on the wire, and memory here.

A delete brings its key, partition and ordering alone, a column of Arrow's null type brings no bytes at all, and a struct may lack
fields. A million such rows of 2,000 columns would take 16 GB.
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
        self._schema: pa.Schema | None = None
        self._left_out = 0

    def counted(self, admitted: Admitted, schema: pa.Schema | None) -> Admitted:
        """The batch with its nulls counted. ``schema``: of the stream; the same object while it does not change.

        Raises TooLargeError.
        """
        rows = admitted.rows.num_rows
        nbytes = rows * self._bits(admitted, schema) // 8
        if nbytes > FILLED_BYTES:
            most = max(1, FILLED_BYTES * rows // nbytes)
            raise TooLargeError(
                f"bytes of nulls in what {rows:,} rows leave out of their table's columns: {nbytes:,}, and the limit is "
                f"{FILLED_BYTES:,}",
                fix=f"Send at most {most:,} rows in a batch.",
            )
        return dataclasses.replace(admitted, nbytes=admitted.nbytes + nbytes) if nbytes else admitted

    def _bits(self, admitted: Admitted, schema: pa.Schema | None) -> int:
        """Of a row. Rows that are all deletes lose what they bring besides."""
        if admitted.deletes is not None and admitted.deletes.true_count == admitted.rows.num_rows:
            return self._dropped_by_deletes
        if schema is not self._schema:
            self._schema, self._left_out = schema, _left_out(list(schema or ()), list(self._target))
        return self._left_out


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
