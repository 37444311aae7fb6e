"""The rows that `--sql` makes of a file's: DuckDB runs the text over the file as a stream, without files, places or settings.

It runs in one thread and keeps the order of rows: the same file and the same text give the same rows with the same numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.types as pat

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import PIECE_ROWS, FileBatch, Source, refused
from headgate_cli.reading.sql_text import INPUT, check_text

if TYPE_CHECKING:
    import duckdb
    from duckdb.sqltypes import DuckDBPyType

_SETTINGS = {
    "threads": "1",  # several would add floats, and give groups, in another order each time
    "preserve_insertion_order": "true",
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",  # nothing is written to a disk
}
_TABLES_LACK = {
    "hugeint": "BIGINT or DECIMAL(38,0)",
    "uhugeint": "BIGINT or DECIMAL(38,0)",
    "bignum": "VARCHAR",
    "time": "VARCHAR",
    "time_ns": "VARCHAR",
    "time with time zone": "VARCHAR",
    "interval": "VARCHAR",
    "bit": "VARCHAR",
    "union": "VARCHAR",
    "variant": "VARCHAR",
    "geometry": "VARCHAR",
    "null": "VARCHAR",
}
"""Types of DuckDB that no table has, and what to cast them to. Arrow's forms of some would change values."""


def queried(source: Source, options: ReadOptions) -> Source:
    """What ``options.sql`` makes of ``source``. Row numbers are those of the result, so a load that goes on runs all of it again.

    Raises CommandError for a text that is not repeatable, reads something else, or gives a type that no table has; while rows are
    read, for a value that the text cannot convert and for more memory than ``options.sql_memory_mb``.
    """
    with _connection(options) as connection, _translated(options):
        rows = _Input(source)
        connection.register(INPUT, rows)
        check_text(connection, options.sql, source.schema.names)
        relation = connection.sql(options.sql)
        _check_columns(relation)
        schema = relation.limit(0).to_arrow_table().schema

    def batches(_skip: int) -> Iterator[FileBatch]:
        rows, before = _Input(source), 0
        with _connection(options) as connection, _translated(options, rows):
            connection.register(INPUT, rows)
            for batch in connection.sql(options.sql).to_arrow_reader(PIECE_ROWS):
                yield FileBatch(batch, before, rows.done)
                before += batch.num_rows

    return replace(source, schema=schema, batches=batches)


class _Input:
    """A file's rows for DuckDB, which asks for a new stream each time it reads them. ``done``: how far the file is read."""

    def __init__(self, source: Source) -> None:
        self.name = source.path.name
        self._source = source
        self._schema = pa.schema([field.with_type(_held(field.type)) for field in source.schema])
        self.done = 0
        self.error: Exception | None = None
        """What ended a stream: DuckDB passes on only its text."""

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self._schema, self._batches())
        return cast("Callable[[object], object]", reader.__arrow_c_stream__)(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for rows, _, done, *_ in self._source.batches(0):
                self.done = max(self.done, done)
                yield rows if rows.schema == self._schema else rows.cast(self._schema)
        except Exception as error:
            self.error = error
            raise


def _held(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pat.is_null(kind) else kind


@contextlib.contextmanager
def _connection(options: ReadOptions) -> Iterator[duckdb.DuckDBPyConnection]:
    try:
        import duckdb
    except ImportError as error:
        raise CommandError(
            "--sql runs on DuckDB, which is not installed here",
            fix="pip install 'headgate-cli[sql]'",
            code=ExitCode.OPERATOR,
            kind="DuckdbMissing",
        ) from error
    with duckdb.connect(config={**_SETTINGS, "memory_limit": f"{options.sql_memory_mb}MiB"}) as connection:
        connection.execute("SET python_enable_replacements = false")  # else a name may be a variable of this program
        zone = (options.timezone or "UTC").replace("'", "''")
        try:
            connection.execute(f"SET TimeZone = '{zone}'")
        except duckdb.Error as error:
            raise refused(f"--timezone {options.timezone}: unknown", "Use a name such as UTC or Europe/Berlin.") from error
        connection.execute("SET lock_configuration = true")
        yield connection


@contextlib.contextmanager
def _translated(options: ReadOptions, rows: _Input | None = None) -> Iterator[None]:
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError, pa.ArrowException) as error:  # in a stream, Arrow passes DuckDB's errors on as OSError
        if rows is not None and rows.error is not None:
            raise rows.error from error
        text = str(error)
        if "Out of Memory" in text:
            fix = f"Allow more: --sql-memory {2 * options.sql_memory_mb}. Sorting, grouping, joining and windows keep rows in it."
            raise refused(f"--sql needs more than {options.sql_memory_mb} MiB", fix) from error
        first = text.removeprefix("Invalid Input Error: ").partition("\n\nLINE ")[0].replace("\n", "; ")
        raise refused(
            f"{'' if rows is None else rows.name + ': '}--sql: {first[:300]}",
            "Correct the SQL, which is DuckDB's; TRY_CAST makes null of what has no value.",
        ) from error


def _check_columns(relation: duckdb.DuckDBPyRelation) -> None:
    names = relation.columns
    if twice := [name for name in names if names.count(name) > 1]:
        raise refused(f"--sql gives two columns {twice[0]!r}", "Name each: SELECT … AS NAME.")
    for name, kind in zip(names, relation.types, strict=True):
        if (lacking := _lacking(kind)) is not None:
            raise refused(
                f"--sql gives column {name!r} as {kind}, which no table has",
                f"Cast it: CAST({name} AS {_TABLES_LACK[lacking]}) AS {name}.",
            )


def _lacking(kind: DuckDBPyType) -> str | None:
    """The type in ``kind`` that no table has, by DuckDB's name."""
    if kind.id in _TABLES_LACK:
        return kind.id
    if kind.id not in ("list", "struct", "map", "array"):
        return None
    inner = (child for _, child in kind.children if not isinstance(child, (int, list)))
    return next((found for child in inner if (found := _lacking(child)) is not None), None)
