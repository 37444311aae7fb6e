"""Types of Parquet, Arrow, Avro and ORC that a table lacks become the next wider one that it has; others only by ``--cast``.

A table has no times without a zone: it would show the clock time of a file as one in UTC. So they need a zone.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.types as pat

from headgate_cli.failures import CommandError
from headgate_cli.reading.nested import Leaf, nested
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import FileBatch, Source, refused
from headgate_cli.reading.text_values import Array
from headgate_tables.arrow import pc

_WIDER: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
}


def widened(source: Source, options: ReadOptions, *, only_casts: bool = False) -> Source:
    """``source`` with types that a table holds; ``only_casts``: with those of ``casts``, and its own beside them.

    Values stay equal: one that would not is an error with row and column.
    Whole microseconds of nanoseconds and a uint64 below 2**63 pass. ``casts`` may cut digits of times and floats off; a cast that
    would make another number of a number, or fail, is refused, too. Raises CommandError for times without a zone where
    ``timezone`` gives none.
    """
    given = dict(options.casts)
    kinds = {field.name: given.get(field.name) or (field.type if only_casts else _wider(field.type)) for field in source.schema}
    if not options.timezone:
        for field in source.schema:
            if _has_local(field.type) and (_has_zone(given[field.name]) if field.name in given else not only_casts):
                raise _without_zone(source.path, field.name)
    changed = {field.name: kinds[field.name] for field in source.schema if kinds[field.name] != field.type}
    if not changed:
        return source
    schema = pa.schema([field.with_type(kinds[field.name]) for field in source.schema])

    def batches(skip: int) -> Iterator[FileBatch]:
        for rows, before, done in source.batches(skip):
            columns: list[Any] = list(rows.columns)
            for at, name in enumerate(rows.schema.names):
                if name in changed:
                    columns[at] = _cast(source.path, name, columns[at], changed[name], before, options)
            yield FileBatch(pa.RecordBatch.from_arrays(columns, schema=schema), before, done)

    return replace(source, schema=schema, batches=batches)


def _wider(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.TimestampType):
        return pa.timestamp("us" if kind.unit == "ns" else kind.unit, tz=kind.tz or "UTC")
    if _has_local(kind):
        if isinstance(kind, pa.StructType):
            return pa.struct([field.with_type(_wider(field.type)) for field in kind])
        if isinstance(kind, pa.ListType):
            return pa.list_(kind.value_field.with_type(_wider(kind.value_type)))
    return _WIDER.get(kind, kind)


def _has_local(kind: pa.DataType) -> bool:
    local = isinstance(kind, pa.TimestampType) and kind.tz is None
    return local or any(_has_local(kind.field(at).type) for at in range(kind.num_fields))


def _has_zone(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.TimestampType) and kind.tz is not None


def _without_zone(path: Path, name: str) -> CommandError:
    return refused(
        f"{path.name}: column {name!r} has times without a time zone",
        "Give the zone of their clock: --timezone UTC or another one, such as Europe/Berlin. Spark's old form (INT96) is in UTC.",
    )


def _cast(path: Path, name: str, column: Array, kind: pa.DataType, before: int, options: ReadOptions) -> Array:
    both = (column.type, kind)
    given = any(name == each for each, _ in options.casts)
    may_cut = given and (all(map(pat.is_timestamp, both)) or all(map(pat.is_floating, both)))

    def leaf(part: Array, wanted: pa.DataType) -> Array:
        if _has_local(part.type) and _has_zone(wanted):
            clock = part.cast(pa.timestamp(cast("Any", wanted).unit), safe=not may_cut)
            return pc.assume_timezone(clock, options.timezone).cast(wanted)
        return part.cast(wanted, safe=not may_cut)

    try:
        return nested(column, kind, leaf)
    except pa.ArrowException as error:
        why = str(error).partition("\n")[0]
        if "Cannot locate" in why:
            raise refused(f"--timezone {options.timezone}: unknown", "Use a name such as UTC or Europe/Berlin.") from error
        row = next(at for at in range(len(column)) if not _fits(column.slice(at, 1), kind, leaf))
        where = f"{path.name}: row {before + row + 1}, column {name!r}: {column[row]}"
        if "in timezone" in why:
            raise refused(f"{where}: {why}", "Correct the value, or give --timezone UTC if that is its clock.") from error
        fix = f"Allow the loss, or name another type: --cast '{name}={_lossy(column.type)}'. Or correct the file."
        if options.sql and not given:
            fix = f"Name another type in the SQL, such as CAST({name} AS VARCHAR)."
        raise refused(f"{where} is no {kind} without loss", fix) from error


def _fits(value: Array, kind: pa.DataType, leaf: Leaf) -> bool:
    try:
        nested(value, kind, leaf)
    except pa.ArrowException:
        return False
    return True


def _lossy(kind: pa.DataType) -> str:
    if pat.is_timestamp(kind):
        return "timestamp"
    return "decimal(20,0)" if kind == pa.uint64() else "string"
