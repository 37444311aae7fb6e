"""Columns of text as the types of a table, with errors that name row, column and value."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.types as pat

from headgate_cli.failures import CommandError
from headgate_cli.load.reading.options import ReadOptions
from headgate_cli.load.reading.source import FileBatch, refused
from headgate_cli.load.reading.text_values import MisfitError, convert, is_number


def typed(
    path: Path, batches: Iterable[FileBatch], kinds: Mapping[str, pa.DataType], options: ReadOptions
) -> Iterator[FileBatch]:
    """``batches`` with the columns of ``kinds`` converted from text. Raises CommandError for a text without an equal value."""
    for rows, before, done in batches:
        columns = list(rows.columns)
        for at, name in enumerate(rows.schema.names):
            if name in kinds:
                try:
                    columns[at] = convert(rows.column(at), kinds[name], options)
                except MisfitError as misfit:
                    raise misfit_error(path, name, kinds[name], before, misfit) from misfit
        yield FileBatch(pa.RecordBatch.from_arrays(columns, names=rows.schema.names), before, done)


def misfit_error(path: Path, name: str, kind: pa.DataType, before: int, misfit: MisfitError) -> CommandError:
    """The error of a value in a column of ``kind``. ``before``: rows before the batch."""
    return refused(
        f"{path.name}: row {before + misfit.index + 1}, column {name!r}: {misfit.value[:80]!r} is no {_name(kind)}{_why(misfit)}",
        f"{_options_for(kind)} Or correct the value. Rows sent before stay, and are not sent again.",
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
    return "A CSV has no values of this type."
