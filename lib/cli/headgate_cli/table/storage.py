"""Timeline, files and rows of a table, read from its own storage without any service."""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_tables.face.owner import Table
from headgate_tables.face.reader import Mode
from headgate_tables.near_names import did_you_mean
from headgate_tables.opening import open_table
from headgate_tables.where import where as condition

_COMPARISONS: dict[str, Callable[[pc.Expression, pc.Expression], pc.Expression]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Location:
    """Where a table is. ``options``: settings of its object store, beside those of the environment."""

    url: str
    options: Mapping[str, str] | None = field(default=None, repr=False)

    def open(self) -> Table:
        """The open table. Raises TablesError."""
        return open_table(self.url, storage_options=self.options)


def timeline(location: Location, limit: int) -> list[dict[str, object]]:
    """The newest ``limit`` instants (0: all), oldest first; each completed write costs one read of its metadata."""
    with location.open() as table:
        return [asdict(each) for each in table.instants(limit)]


def files(location: Location) -> list[dict[str, object]]:
    """One record for each file slice of a live file group."""
    with location.open() as table:
        return [
            {
                "partition": part.partition,
                "file_group": part.file_id,
                "base_instant": part.base_instant,
                "base_file": part.base,
                "logs": len(part.logs),
                "log_files": [log.name for log in part.logs],
            }
            for group in table.file_groups()
            for part in group.slices()
        ]


@dataclass(frozen=True, slots=True)
class ScanResult:
    """Rows of a scan. ``as_of``: completion time of the newest commit among them, for the ``since`` of the next scan."""

    batches: Iterator[pa.RecordBatch]
    schema: pa.Schema
    as_of: str


def scan(
    location: Location,
    columns: Sequence[str],
    filters: Sequence[str],
    partitions: Sequence[str],
    limit: int,
    *,
    where: str | None = None,
    as_of: str | None = None,
    since: str | None = None,
    read_optimized: bool = False,
) -> ScanResult:
    """At most ``limit`` rows (0: all) that meet all ``filters`` and ``where``. Filters are as ``expression_of`` takes them,
    ``where`` is SQL; the rest is as in ``Table.scan``.
    """
    with location.open() as table:
        mode: Mode = "read_optimized" if read_optimized else "snapshot"
        found = table.scan(
            columns or None,
            partitions or None,
            lambda schema: _all_of(expression_of(filters, schema), condition(where, schema) if where is not None else None),
            mode=mode,
            as_of=as_of,
            since=since,
        )
        return ScanResult(_first(found.to_reader(), limit), found.schema, found.as_of)


def _first(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    left = limit or None
    for batch in batches:
        if left is not None:
            batch = batch.slice(0, left)
            left -= batch.num_rows
        yield batch
        if left == 0:
            return


def expression_of(filters: Sequence[str], schema: pa.Schema) -> pc.Expression | None:
    """All conditions ``col=value`` (or !=, <, <=, >, >=), with values of the column's type; ``col=`` means null.

    Raises CommandError.
    """
    result: pc.Expression | None = None
    for text in filters:
        term = _term(text, schema)
        result = term if result is None else result & term
    return result


def _all_of(left: pc.Expression | None, right: pc.Expression | None) -> pc.Expression | None:
    return left & right if left is not None and right is not None else left if left is not None else right


def _term(text: str, schema: pa.Schema) -> pc.Expression:
    at = min((text.find(mark) for mark in "=!<>" if mark in text), default=-1)
    sign = text[at : at + 2] if text[at : at + 2] in _COMPARISONS else text[at : at + 1]
    name, value = text[:at].strip(), text[at + len(sign) :].strip()
    if at <= 0 or sign not in _COMPARISONS:
        raise CommandError(
            f"--filter {text!r} is not a condition", fix="Write --filter column=value (or !=, <, <=, >, >=).", code=ExitCode.USAGE
        )
    if name not in schema.names:
        raise CommandError(
            f"--filter: the table has no column {name!r}",
            fix=f"{did_you_mean(name, schema.names)}The columns are {', '.join(schema.names)}.",
            code=ExitCode.FIX_CALL,
        )
    column = pc.field(name)
    if not value and sign in ("=", "!="):
        return column.is_null() if sign == "=" else ~column.is_null()
    kind = schema.field(name).type
    try:
        typed = pa.scalar(value).cast(kind)
    except pa.ArrowException as error:
        raise CommandError(
            f"--filter {name}: {value!r} does not fit {kind}", fix=f"Give a value of type {kind}.", code=ExitCode.FIX_CALL
        ) from error
    condition: pc.Expression = _COMPARISONS[sign](column, pc.scalar(typed))
    return condition
