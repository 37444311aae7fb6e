"""Types of Parquet, Arrow, Avro and ORC that a table lacks become the next wider one that it has; others only by ``--cast``.

A table has no times without a zone: it would show the clock time of a file as one in UTC. So they need a zone.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.types as pat

from headgate_cli.failures import CommandError
from headgate_cli.reading.bad_rows import BadRows
from headgate_cli.reading.nested import nested
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import FileBatch, Source, refused
from headgate_cli.reading.text_values import Array
from headgate_tables.arrow import pc

_nulls = cast("Callable[[int, pa.DataType], Array]", pa.nulls)
_WIDER: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
}


def widened(source: Source, options: ReadOptions, bad: BadRows | None = None, *, only_casts: bool = False) -> Source:
    """``source`` with types that a table holds; ``only_casts``: with those of ``casts``, and its own beside them.

    ``bad`` takes rows with values that do not fit.

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
    taken = bad or BadRows(options)

    def batches(skip: int) -> Iterator[FileBatch]:
        for batch in source.batches(skip):
            rows, raw = batch.rows, batch.raw
            columns: list[Any] = list(rows.columns)
            wrong: dict[int, CommandError] = {}
            for at, name in enumerate(rows.schema.names):
                if name in changed:
                    casting = _Casting(source.path, name, columns[at], changed[name], batch.before, options)
                    columns[at], misfits = casting.result(many=taken.takes_more)
                    for row in misfits:
                        wrong.setdefault(row, casting.error(row))
            for row in sorted(wrong):
                taken.take(wrong[row], rows.slice(row, 1) if raw is None else raw.slice(row, 1))
            yield batch._replace(rows=pa.RecordBatch.from_arrays(columns, schema=schema)).without(wrong)

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


class _Casting:
    """A column of a batch and the type that it becomes. ``before``: rows before the batch."""

    def __init__(self, path: Path, name: str, column: Array, kind: pa.DataType, before: int, options: ReadOptions) -> None:
        self._path = path
        self._name = name
        self._column = column
        self._kind = kind
        self._before = before
        self._options = options
        both = (column.type, kind)
        self._given = any(name == each for each, _ in options.casts)
        self._may_cut = self._given and (all(map(pat.is_timestamp, both)) or all(map(pat.is_floating, both)))

    def result(self, *, many: bool) -> tuple[Array, list[int]]:
        """The column, null where a value does not fit, and these rows: all of them or, without ``many``, the first."""
        try:
            return self._whole(self._column), []
        except pa.ArrowException:
            parts: list[Array] = []
            misfits: list[int] = []
            self._halve(0, len(self._column), parts, misfits, many=many)
            return pa.concat_arrays(parts), misfits

    def _halve(self, start: int, length: int, parts: list[Array], misfits: list[int], *, many: bool) -> None:
        if misfits and not many:
            parts.append(_nulls(length, self._kind))
            return
        try:
            parts.append(self._whole(self._column.slice(start, length)))
        except pa.ArrowException:
            if length == 1:
                misfits.append(start)
                parts.append(_nulls(1, self._kind))
                return
            half = length // 2
            self._halve(start, half, parts, misfits, many=many)
            self._halve(start + half, length - half, parts, misfits, many=many)

    def _whole(self, column: Array) -> Array:
        return nested(column, self._kind, self._leaf)

    def _leaf(self, part: Array, wanted: pa.DataType) -> Array:
        if _has_local(part.type) and _has_zone(wanted):
            clock = part.cast(pa.timestamp(cast("Any", wanted).unit), safe=not self._may_cut)
            return pc.assume_timezone(clock, self._options.timezone).cast(wanted)
        return part.cast(wanted, safe=not self._may_cut)

    def error(self, row: int) -> CommandError:
        """Why the value of this row does not fit. Raises CommandError for what no row is the reason of."""
        value = self._column.slice(row, 1)
        try:
            self._whole(value)
            why = ""
        except pa.ArrowException as error:
            why = str(error).partition("\n")[0]
        if "Cannot locate" in why:
            raise refused(f"--timezone {self._options.timezone}: unknown", "Use a name such as UTC or Europe/Berlin.")
        shown = value.to_string(skip_new_lines=True)[1:-1].strip()  # Python has no nanoseconds
        where = f"{self._path.name}: row {self._before + row + 1}, column {self._name!r}: {shown}"
        if "in timezone" in why:
            return refused(f"{where}: {why}", "Correct the value, or give --timezone UTC if that is its clock.")
        fix = f"Allow the loss, or name another type: --cast '{self._name}={_lossy(value.type)}'. Or correct the file."
        if self._given and pat.is_string(self._kind):
            fix = f"Leave --cast out: the column stays {value.type}. Or correct the file."
        if self._options.sql and not self._given:
            fix = f"Name another type in the SQL, such as CAST({self._name} AS VARCHAR)."
        return refused(f"{where} is no {self._kind} without loss", fix)


def _lossy(kind: pa.DataType) -> str:
    if pat.is_timestamp(kind):
        return "timestamp"
    return "decimal(20,0)" if kind == pa.uint64() else "string"
