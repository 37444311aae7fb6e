"""Rows of an AVRO_DATA block (Hudi: HoodieAvroDataBlock): a version, a count, and per record its length and Avro bytes.

They are read by columns (``avro_run``), or, when that gets out of step, one by one, which says what is damaged.
"""

from __future__ import annotations

import io
import itertools
import json
import struct
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from headgate_tables.arrow import ChunkedArray
from headgate_tables.errors import CorruptFileError, TablesError, UnsupportedTableError
from headgate_tables.hudi.log.avro_binary import as_original, physical
from headgate_tables.hudi.log.avro_run import LENGTH_BYTES, read_run
from headgate_tables.hudi.log.avro_walk import OutOfStepError
from headgate_tables.hudi.schema.avro_json import AvroSchema, AvroType
from headgate_tables.hudi.schema.avro_to_arrow import arrow_schema

_PREFIX = 8
"""Bytes before the first record: content version and count."""


def decode(content: pa.Buffer, schema_json: str, columns: Collection[str] | None, where: str) -> pa.Table:
    """The block's rows: ``columns`` of them in the schema's order (names it lacks are left out), None = all.

    Types are those of ``avro_to_arrow.arrow_schema``. ``where`` names file and offset in errors. Raises CorruptFileError
    for bytes that are not what the schema says, UnsupportedTableError for content version 1 (before Hudi 0.5) or an
    unknown one, and for types without an Arrow form.
    """
    count = row_count(content, where)
    wanted = _wanted(schema_json, columns, where)
    if count == 0:
        return wanted.empty_table()
    shape = _shape(schema_json)
    decoded = _decode_columns(content.slice(_PREFIX), [count], [content.size - _PREFIX], shape, wanted.names)
    if decoded is None:
        decoded = _decode_rows(content, count, shape, where)
    return _as_wanted(decoded, count, wanted, shape, where)


def decode_together(contents: Sequence[pa.Buffer], schema_json: str, columns: Collection[str] | None) -> list[pa.Table] | None:
    """``decode`` of each, in one pass over all: of blocks of 20 rows, a fifth of the time. None when one of them needs a pass of
    its own, which says what is wrong with it.
    """
    try:
        counts = [row_count(content, "") for content in contents]
        wanted = _wanted(schema_json, columns, "")
        shape = _shape(schema_json)
        run = pa.py_buffer(b"".join(content.slice(_PREFIX) for content in contents))
        sizes = [content.size - _PREFIX for content in contents]
        decoded = _decode_columns(run, counts, sizes, shape, wanted.names)
        if decoded is None:
            return None
        rows = _as_wanted(decoded, sum(counts), wanted, shape, "")
    except TablesError:
        return None
    starts = itertools.accumulate(counts, initial=0)
    return [rows.slice(start, count) for start, count in zip(starts, counts, strict=False)]


def _wanted(schema_json: str, columns: Collection[str] | None, where: str) -> pa.Schema:
    schema = _arrow(schema_json, where)
    return pa.schema([field for field in schema if columns is None or field.name in columns])


def _as_wanted(decoded: pa.Table, count: int, wanted: pa.Schema, shape: AvroType, where: str) -> pa.Table:
    by_name = {field["name"]: field["type"] for field in shape["fields"]}
    try:
        arrays = [as_original(_one(decoded.column(field.name)), field.type, by_name[field.name]) for field in wanted]
    except pa.ArrowException as error:
        raise _corrupt(where, f"a value is out of range ({error})") from error
    return pa.table(arrays, schema=wanted) if arrays else _no_columns(count)


def row_count(content: pa.Buffer, where: str) -> int:
    """Rows in the block. Raises like ``decode``."""
    if content.size < _PREFIX:
        raise _corrupt(where, "it ends before its row count")
    version, count = struct.unpack_from(">ii", content)
    if version not in (2, 3):
        raise UnsupportedTableError(
            f"{where}: Avro block of content version {version}", fix="Compact the table with the Hudi release that wrote it."
        )
    if not 0 <= count <= (content.size - _PREFIX) // 4:
        raise _corrupt(where, f"it claims {count} rows")
    return int(count)


def _decode_columns(
    run: pa.Buffer, counts: Sequence[int], sizes: Sequence[int], shape: AvroType, names: list[str]
) -> pa.Table | None:
    """``run``: the rows of some blocks, each of so many bytes and rows."""
    count = sum(counts)
    if not count:
        return None
    try:
        columns, lengths = read_run(shape["fields"], run, count, names)
    except (OutOfStepError, pa.ArrowException):
        return None
    ends = np.append(0, np.cumsum(lengths + LENGTH_BYTES))[np.cumsum(counts)]
    return pa.table(columns) if np.array_equal(ends, np.cumsum(sizes)) else None


def _decode_rows(content: pa.Buffer, count: int, shape: AvroType, where: str) -> pa.Table:
    """Row by row, for what the fast path cannot read. It decides what is damaged, so it trusts no length."""
    parsed = fastavro.parse_schema(json.loads(json.dumps(shape)))
    view = memoryview(content).cast("B")
    at = _PREFIX
    rows: list[dict[str, object]] = []
    for _ in range(count):
        (length,) = struct.unpack_from(">i", view, at) if at + 4 <= len(view) else (-1,)
        end = at + 4 + length
        if length < 0 or end > len(view):
            raise _corrupt(where, f"row {len(rows)} ends outside of it")
        record = io.BytesIO(view[at + 4 : end])
        try:
            row = fastavro.schemaless_reader(record, parsed, None)
            if not isinstance(row, dict):
                raise TypeError(f"{row!r} is not a record")
        except (
            ValueError,
            EOFError,
            IndexError,
            KeyError,
            TypeError,
            OverflowError,
            MemoryError,
            StopIteration,
            ArithmeticError,
        ) as error:
            raise _corrupt(where, f"row {len(rows)} does not fit the schema ({error!r})") from error
        if record.tell() != length:
            raise _corrupt(where, f"row {len(rows)} is longer than its values")
        rows.append(row)
        at = end
    if at != len(view):
        raise _corrupt(where, "bytes follow the last row")
    try:
        kinds = pa.schema([pa.field(field["name"], _physical_type(field["type"])) for field in shape["fields"]])
        return pa.Table.from_pylist(rows, schema=kinds)
    except (pa.ArrowException, OverflowError) as error:
        raise _corrupt(where, f"a value is out of range ({error})") from error


def _physical_type(shape: AvroSchema) -> pa.DataType:
    if isinstance(shape, list):
        return _physical_type(next(branch for branch in shape if branch != "null"))
    if isinstance(shape, str):
        return _PHYSICAL[shape]
    if shape.get("logicalType") == "decimal":
        return pa.decimal128(shape["precision"], shape.get("scale", 0))
    if shape["type"] == "record":
        return pa.struct([(field["name"], _physical_type(field["type"])) for field in shape["fields"]])
    if shape["type"] == "array":
        return pa.large_list(_physical_type(shape["items"]))
    return _physical_type(shape["type"])


_PHYSICAL: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.large_string(),
    "bytes": pa.large_binary(),
    "fixed": pa.large_binary(),
}


@lru_cache(maxsize=64)
def _shape(schema_json: str) -> AvroType:
    return physical(json.loads(schema_json))


@lru_cache(maxsize=64)
def _parsed(schema_json: str) -> pa.Schema:
    return arrow_schema(schema_json, "")


def _arrow(schema_json: str, where: str) -> pa.Schema:
    try:
        return _parsed(schema_json)
    except TablesError:
        return arrow_schema(schema_json, where)


def _one(column: ChunkedArray) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _no_columns(count: int) -> pa.Table:
    return pa.table({"": pa.nulls(count)}).select([])


def _corrupt(where: str, how: str) -> CorruptFileError:
    return CorruptFileError(
        f"{where}: an Avro block is damaged, {how}", fix="Restore the file from a copy; verify() names every damaged file."
    )
