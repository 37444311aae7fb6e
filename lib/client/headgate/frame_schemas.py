"""The schema of rows that are there already: of a frame, an Arrow table or a Parquet file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.types as pat

from headgate.errors import InvalidArgumentError
from headgate.frames import stream_of

if TYPE_CHECKING:
    from headgate.values import Field

_WIDER: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
}
_STORED_AS: dict[pa.DataType, pa.DataType] = {
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
    pa.time32("s"): pa.int32(),
    pa.time32("ms"): pa.int32(),
    pa.time64("us"): pa.int64(),
    pa.time64("ns"): pa.int64(),
}
_LISTS = (pa.ListType, pa.LargeListType, pa.FixedSizeListType, pa.ListViewType, pa.LargeListViewType)


@runtime_checkable
class ArrowStream(Protocol):
    """What gives its rows by Arrow's PyCapsule interface: frames of pandas and polars, relations of DuckDB, Arrow tables."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def schema_of_rows(rows: "ArrowStream | pa.RecordBatch | os.PathLike[str]") -> pa.Schema:
    """The schema of a table that takes these rows: its columns and, of types that a table lacks, the next wider ones.

    Nanoseconds become microseconds, unsigned integers signed ones, float16 float32: what a wider column cannot hold, like a
    fraction of a microsecond, is refused when it is sent. A Parquet file gives its schema without its rows.

    Raises InvalidArgumentError for a column of nulls alone, for the index of a pandas frame, and for a file that is not Parquet.
    """
    given = _read(Path(rows)) if isinstance(rows, os.PathLike) else _given(rows)
    return pa.schema([_stored(field) for field in given])


def _given(rows: ArrowStream | pa.RecordBatch) -> pa.Schema:
    schema = getattr(rows, "schema", None)
    if isinstance(schema, pa.Schema):
        return schema
    return stream_of(rows).schema


def _read(path: Path) -> pa.Schema:
    from pyarrow import parquet

    try:
        found: pa.Schema = parquet.read_schema(path)
    except FileNotFoundError as error:
        raise InvalidArgumentError(f"there is no file {path}", fix="Correct the path.") from error
    except (OSError, pa.ArrowInvalid) as error:
        fix = "Give a Parquet file. `headgate load FILE --table NAME --create --key COLUMN` takes CSV, JSON, Avro and ORC."
        raise InvalidArgumentError(f"{path} cannot be read as Parquet: {error}", fix=fix) from error
    return found


def _stored(field: "Field") -> "Field":
    if pat.is_null(field.type):
        fix = "Give the schema yourself, or the column a type: cast it."
        raise InvalidArgumentError(f"column {field.name!r} has nulls alone, so its type is not known", fix=fix)
    if field.name.startswith("__index_level_"):
        fix = "Drop it, frame.reset_index(drop=True), or name it: frame.reset_index(names='…')."
        raise InvalidArgumentError("the frame's index would be a column without a name", fix=fix)
    return pa.field(field.name, _as_column(field.type), nullable=field.nullable)


def _as_column(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.DictionaryType):
        kind = kind.value_type
    if isinstance(kind, pa.TimestampType) and kind.unit == "ns":
        kind = pa.timestamp("us", tz=kind.tz)
    return _WIDER.get(kind, kind)


def stored_type(kind: pa.DataType) -> pa.DataType:
    """The type in which a table stores such values, which its coordinator decides: for looking whether values fit it."""
    kind = _as_column(kind)
    if isinstance(kind, pa.BaseExtensionType):
        return stored_type(kind.storage_type)
    if isinstance(kind, pa.TimestampType):
        return pa.timestamp("us" if kind.unit == "us" else "ms", tz="UTC")
    if isinstance(kind, pa.StructType):
        return pa.struct([field.with_type(stored_type(field.type)) for field in kind])
    if isinstance(kind, _LISTS):
        return pa.list_(pa.field("element", stored_type(kind.value_type), nullable=kind.value_field.nullable))
    return _STORED_AS.get(kind, kind)
