"""Options of `headgate load` that describe a file."""

import csv
import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
import pyarrow as pa

from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.streams import check_encoding
from headgate_cli.table.schemas import parse_type

_TAB = {"\\t": "\t", "tab": "\t"}


def reading_options(command: Callable[..., object]) -> Callable[..., object]:
    """Options that give a command ``reading``: a ReadOptions. Raises click.UsageError for what no file can have."""
    return _form_options(_column_options(command))


def _form_options(command: Callable[..., object]) -> Callable[..., object]:
    """Options about the text of a file and the values in it."""

    @functools.wraps(command)
    def with_reading(
        *arguments: object,
        delimiter: str,
        quote: str,
        escape: str,
        header: bool,
        columns: str,
        skip_lines: int,
        encoding: str,
        nulls: tuple[str, ...],
        decimal: str,
        thousands: str,
        true_words: tuple[str, ...],
        false_words: tuple[str, ...],
        date_format: str,
        timestamp_format: str,
        timezone: str,
        binary: str | None,
        **named: object,
    ) -> object:
        check_encoding(encoding)
        _check_marks(delimiter, quote, escape, decimal, thousands)
        reading = ReadOptions(
            delimiter=_TAB.get(delimiter, delimiter),
            quote=quote,
            escape=escape,
            header=header,
            columns=tuple(name.strip() for name in columns.split(",")) if columns else (),
            skip_lines=skip_lines,
            encoding=encoding,
            nulls=("", *(word for word in nulls if word)),
            decimal=decimal,
            thousands=thousands,
            true_words=true_words,
            false_words=false_words,
            date_format=date_format,
            timestamp_format=timestamp_format,
            timezone=timezone,
            binary=binary or "",
        )
        return command(*arguments, reading=reading, **named)

    for option in reversed(_FORM_OPTIONS):
        with_reading = option(with_reading)
    return with_reading


def _column_options(command: Callable[..., object]) -> Callable[..., object]:
    """Options about columns and rows."""

    @functools.wraps(command)
    def with_reading(
        *arguments: object,
        reading: ReadOptions,
        casts: tuple[str, ...],
        renames: tuple[str, ...],
        select: str,
        sql: str,
        sql_memory: int,
        sample_rows: int,
        on_error: str,
        max_errors: int,
        **named: object,
    ) -> object:
        if sql and (select or renames):
            raise click.UsageError('--sql chooses and names columns itself: SELECT "Order ID" AS order_id FROM input')
        whole = replace(
            reading,
            casts=tuple(map(_cast, casts)),
            renames=tuple(map(_rename, renames)),
            select=_select(select),
            sql=sql,
            sql_memory_mb=sql_memory,
            sample_rows=sample_rows,
            skip_bad=on_error != "stop",
            max_errors=max_errors,
            reject_file=_reject_file(on_error, reading.quote),
        )
        return command(*arguments, reading=whole, **named)

    for option in reversed(_COLUMN_OPTIONS):
        with_reading = option(with_reading)
    return with_reading


def _check_marks(delimiter: str, quote: str, escape: str, decimal: str, thousands: str) -> None:
    if len(_TAB.get(delimiter, delimiter)) > 1 or any(len(mark) > 1 for mark in (quote, escape, thousands)):
        raise click.UsageError("--delimiter, --quote, --escape and --thousands have one character")
    if thousands and (thousands == decimal or thousands.isalnum()):
        raise click.UsageError("--thousands is a mark other than --decimal")


def _reject_file(on_error: str, quote: str) -> str:
    how, _, file = on_error.partition(":")
    if on_error not in ("stop", "skip") and not (how == "reject" and file):
        raise click.UsageError(f"--on-error {on_error}: stop, skip or reject:FILE")
    if file and quote != '"':
        raise click.UsageError("--on-error reject:FILE writes quotation marks: it goes with --quote '\"' alone")
    if file and Path(file).exists():
        raise click.UsageError(f"--on-error {on_error}: the file exists; load it after mending, or remove it")
    return file


def _cast(text: str) -> tuple[str, pa.DataType]:
    name, _, kind = text.rpartition("=")
    try:
        return name, parse_type(kind)
    except ValueError as error:
        raise click.UsageError(f"--cast {text}: {error}") from error


def _rename(text: str) -> tuple[str, str]:
    name, mark, new = text.rpartition("=")
    if not (mark and new.strip()):
        raise click.UsageError(f"--rename {text}: COLUMN=NAME, such as 'Order ID=order_id'")
    return name, new.strip()


def _select(text: str) -> tuple[str, ...]:
    """Names between commas; one with a comma stands in quotes."""
    names = tuple(name.strip() for row in csv.reader([text], skipinitialspace=True) for name in row) if text else ()
    if twice := [name for name in names if names.count(name) > 1 or not name]:
        raise click.UsageError(f"--select {text}: " + (f"{twice[0]} stands there twice" if twice[0] else "a name is empty"))
    return names


_FORM_OPTIONS = (
    click.option("--delimiter", default="", help="Of a CSV: one character, or tab. [found]"),
    click.option("--quote", default='"', show_default=True, help="Quotation mark of a CSV."),
    click.option("--escape", default="", help="Of a CSV: character before a quotation mark that is part of a value."),
    click.option("--header", is_flag=True, help="Of a CSV: the first line has names, although it looks like values."),
    click.option("--columns", default="", help="Names of a CSV without a header, column,…"),
    click.option("--skip-lines", default=0, type=click.IntRange(0), help="Lines before the header or the first row."),
    click.option("--encoding", default="", help="Such as windows-1252. [utf-8, or by the byte order mark]"),
    click.option("--null", "nulls", multiple=True, help="Text that means null in a CSV, beside the empty one; may be repeated."),
    click.option("--decimal", default=".", show_default=True, type=click.Choice([".", ","]), help="Decimal mark of a CSV."),
    click.option("--thousands", default="", help="Mark between thousands in a CSV. [none]"),
    click.option("--true", "true_words", multiple=True, help="Word for true in a CSV, beside true; may be repeated."),
    click.option("--false", "false_words", multiple=True, help="Word for false in a CSV, beside false; may be repeated."),
    click.option("--date-format", default="", help="Of dates, such as %d/%m/%Y. [ISO, or dots: 31.12.2026]"),
    click.option("--timestamp-format", default="", help="Of times, such as '%m/%d/%Y %I:%M %p'. [ISO, or dots]"),
    click.option("--timezone", default="", help="Zone of times that name none, such as UTC or Europe/Berlin. [refused]"),
    click.option("--binary", type=click.Choice(["hex", "utf-8"]), help="What a text is in a column of bytes. [refused]"),
)
_COLUMN_OPTIONS = (
    click.option("--cast", "casts", multiple=True, metavar="COLUMN=TYPE", help="Type of a column; may be repeated."),
    click.option("--on-error", default="stop", show_default=True, metavar="HOW", help="Bad rows: stop, skip, reject:FILE."),
    click.option(
        "--max-errors", default=1000, show_default=True, type=click.IntRange(0), help="Bad rows a file before it stops."
    ),
    click.option("--rename", "renames", multiple=True, metavar="COLUMN=NAME", help="Another name in the table; may be repeated."),
    click.option("--select", default="", metavar="COLUMNS", help="Load these columns of the file alone, in this order. [all]"),
    click.option("--sql", default="", help="Load what this SELECT of DuckDB's makes of the file's rows: 'select … from input'."),
    click.option(
        "--sql-memory",
        default=1024,
        show_default=True,
        type=click.IntRange(64),
        help="MiB for --sql, beside those of the load; sorting, grouping and joining need them.",
    ),
    click.option("--sample-rows", default=0, type=click.IntRange(0), help="Rows that types are inferred from. [all]"),
)
