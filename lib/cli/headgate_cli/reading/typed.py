"""Columns of text as the types of a table, with errors that name row, column and value."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.types as pat

from headgate_cli.failures import CommandError
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import FileBatch, refused
from headgate_cli.reading.text_values import Array, MisfitError, convert, is_bytes, is_number

_nulls = cast("Callable[[int, pa.DataType], Array]", pa.nulls)


def typed(
    path: Path,
    batches: Iterable[FileBatch],
    kinds: Mapping[str, pa.DataType],
    options: ReadOptions,
    leave_out: Callable[[CommandError, pa.RecordBatch], None],
) -> Iterator[FileBatch]:
    """``batches`` with the columns of ``kinds`` converted from text, without the rows that ``leave_out`` takes.

    ``leave_out`` gets the error of the first text of a row that has no equal value, and the row; it may raise the error.
    """
    for batch in batches:
        rows, before = batch.rows, batch.before
        columns = list(rows.columns)
        wrong: dict[int, CommandError] = {}
        for at, name in enumerate(rows.schema.names):
            if name in kinds:
                columns[at], misfits = _converted(rows.column(at), kinds[name], options)
                for misfit in misfits:
                    wrong.setdefault(misfit.index, misfit_error(path, name, kinds[name], before, misfit))
        for index in sorted(wrong):
            leave_out(wrong[index], rows.slice(index, 1))
        whole = pa.RecordBatch.from_arrays(columns, names=rows.schema.names)
        yield batch._replace(rows=whole, raw=rows).without(wrong)


def _converted(column: Array, kind: pa.DataType, options: ReadOptions) -> tuple[Array, list[MisfitError]]:
    """The values, null for texts that have none, and those: no more than the load needs to know."""
    parts: list[Array] = []
    misfits: list[MisfitError] = []
    start = 0
    while len(misfits) <= (options.max_errors if options.skip_bad else 0):
        rest = column.slice(start)
        try:
            return pa.concat_arrays([*parts, convert(rest, kind, options)]), misfits
        except MisfitError as misfit:
            misfits.append(MisfitError(start + misfit.index, misfit.value, misfit.why))
            parts += [convert(rest.slice(0, misfit.index), kind, options), _nulls(1, kind)]
            start += misfit.index + 1
    return pa.concat_arrays([*parts, _nulls(len(column) - start, kind)]), misfits


def misfit_error(path: Path, name: str, kind: pa.DataType, before: int, misfit: MisfitError) -> CommandError:
    """The error of a value in a column of ``kind``. ``before``: rows before the batch."""
    return refused(
        f"{path.name}: row {before + misfit.index + 1}, column {name!r}: {misfit.value[:80]!r} is no {_name(kind)}{_why(misfit)}",
        f"{_options_for(kind)} Or correct the value: rows sent before stay, and the corrected file is loaded whole, as upserts.",
    )


def _name(kind: pa.DataType) -> str:
    if pat.is_timestamp(kind):
        return "timestamp with a time zone" if kind.tz else "timestamp without a time zone"
    return "date" if pat.is_date(kind) else str(kind)


def _why(misfit: MisfitError) -> str:
    known = (
        "is ambiguous in timezone",
        "doesn't exist in timezone",
        "data loss",
        "Cannot locate",
        "has not four digits",
        "too large",
        "may be",
    )
    return f" ({misfit.why.partition(': ')[0]})" if any(each in misfit.why for each in known) else ""


def _options_for(kind: pa.DataType) -> str:
    if pat.is_timestamp(kind):
        return "Give --timezone for times without a zone, --timestamp-format such as '%d/%m/%Y %H:%M', or --null for a word."
    if pat.is_date(kind):
        return "Give --date-format, such as '%d/%m/%Y', or --null for a word that means null."
    if pat.is_boolean(kind):
        return "Give the words: --true yes --false no, or --null for a word that means null."
    if is_number(kind):
        return "Give --decimal or --thousands for other marks, or --null for a word that means null."
    if is_bytes(kind):
        return (
            "Say what texts are: --binary hex, as `headgate table scan` writes bytes, or --binary utf-8 for a text's own bytes."
        )
    if pat.is_nested(kind):
        return "A text is no list, struct or map: load them from Parquet or JSON, or leave the column out with --select."
    return "A CSV has no values of this type."
