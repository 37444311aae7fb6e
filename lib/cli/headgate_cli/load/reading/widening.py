"""Types of Parquet and Arrow that a table lacks become the next wider one that it has; others only by ``--cast``."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from headgate_cli.load.reading.options import ReadOptions
from headgate_cli.load.reading.source import FileBatch, Source, refused

_WIDER: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
}


def widened(source: Source, options: ReadOptions) -> Source:
    """``source`` with types that a table holds. Values stay equal: one that would not is an error with row and column.

    Whole microseconds of nanoseconds and a uint64 below 2**63 pass. ``casts`` may cut digits of times and floats off; a cast that
    would make another number of a number, or fail, is refused, too.
    """
    given = dict(options.casts)
    kinds = {field.name: given.get(field.name) or _wider(field.type) for field in source.schema}
    changed = {field.name: kinds[field.name] for field in source.schema if kinds[field.name] != field.type}
    if not changed:
        return source
    schema = pa.schema([field.with_type(kinds[field.name]) for field in source.schema])

    def batches(skip: int) -> Iterator[FileBatch]:
        for rows, before, done in source.batches(skip):
            columns: list[Any] = list(rows.columns)
            for at, name in enumerate(rows.schema.names):
                if name in changed:
                    columns[at] = _cast(source.path, name, columns[at], changed[name], before, given=name in given)
            yield FileBatch(pa.RecordBatch.from_arrays(columns, schema=schema), before, done)

    return replace(source, schema=schema, batches=batches)


def _wider(kind: pa.DataType) -> pa.DataType:
    if pat.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", tz=kind.tz)
    return _WIDER.get(kind, kind)


def _cast(path: Path, name: str, column: Any, kind: pa.DataType, before: int, *, given: bool) -> Any:
    both = (column.type, kind)
    may_cut = given and (all(map(pat.is_timestamp, both)) or all(map(pat.is_floating, both)))
    try:
        return column.cast(kind, safe=not may_cut)
    except pa.ArrowException as error:
        row = next(at for at in range(len(column)) if not _fits(column.slice(at, 1), kind))
        fix = f"Allow the loss, or name another type: --cast '{name}={_lossy(column.type)}'. Or correct the file."
        raise refused(
            f"{path.name}: row {before + row + 1}, column {name!r}: {column[row]} is no {kind} without loss", fix
        ) from error


def _fits(value: Any, kind: pa.DataType) -> bool:
    try:
        value.cast(kind)
    except pa.ArrowException:
        return False
    return True


def _lossy(kind: pa.DataType) -> str:
    if pat.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_local"
    return "decimal(20,0)" if kind == pa.uint64() else "string"
