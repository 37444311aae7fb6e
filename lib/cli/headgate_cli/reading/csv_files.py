"""CSV and TSV: pyarrow parses, every column as text, so that no type is guessed from a part of the file."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa
import pyarrow.csv as pa_csv

from headgate_cli.failures import CommandError
from headgate_cli.reading.bad_rows import BadRows, csv_line
from headgate_cli.reading.inference import ColumnInference
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.pacing import PacedStream
from headgate_cli.reading.selecting import check_casts, check_selected, selected
from headgate_cli.reading.source import BLOCK_BYTES, FileBatch, Source, numbered, refused
from headgate_cli.reading.streams import TextStream
from headgate_cli.reading.typed import typed
from headgate_tables.arrow import pc

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_HINT = "Give --delimiter, --quote, --escape, --columns or --skip-lines, or correct the file."
_BEGINNING = 1 << 20
Opener = Callable[[], TextStream]


class CsvFile:
    """One CSV. ``names``: of its columns; ``delimiter``: given or found. Raises CommandError for a file that has no columns.

    ``stream`` opens the file's text; each pass over the file opens it anew.
    """

    def __init__(self, path: Path, stream: Opener, options: ReadOptions) -> None:
        self._path = path
        self._stream = stream
        self._options = options
        self.delimiter = options.delimiter or self._found_delimiter()
        self.names = self._names(self.delimiter, lenient=options.skip_bad)
        self._check_names()

    def batches(self, bad: BadRows) -> Iterator[FileBatch]:
        """All rows as text, null for one of ``nulls`` without quotes. ``bad`` takes lines with other columns."""
        ragged = _Ragged(self._path, bad)
        last: FileBatch | None = None
        with self._stream() as stream:
            stream.quote = self._options.quote.encode()
            try:
                with self._reader(stream, self.delimiter, self.names, ragged=ragged if self._options.skip_bad else None) as (
                    reader,
                    paced,
                ):
                    for batch in numbered(paced.taken(reader), paced.done):
                        yield batch
                        last = batch if batch.rows.num_rows else last
            except pa.ArrowException as error:
                raise ragged.error or self._unreadable(error) from error
            if last is not None and stream.quotes % 2 and _spans_lines(last.rows):
                row = last.before + last.rows.num_rows
                raise refused(f"{self._path.name}: a quotation mark is never closed; row {row} has the rest of the file", _HINT)

    def infer(self, known: Mapping[str, pa.DataType]) -> pa.Schema:
        """The columns and their types, from all rows or from ``sample_rows``. A column without a value is of type null.

        ``known``: types that need no inference. Raises CommandError for a column that could be read in two ways.
        """
        if all(name in known for name in self.names):
            return pa.schema([(name, known[name]) for name in self.names])
        given = dict(known)
        columns = {name: ColumnInference(self._options) for name in self.names if name not in given}
        limit = self._options.sample_rows
        for rows, before, *_ in self.batches(BadRows(self._options)):
            for name, column in columns.items():
                column.add(rows.column(name).slice(0, limit - before) if limit else rows.column(name))
            if limit and before + rows.num_rows >= limit:
                break
        kinds = [given.get(name) or columns[name].kind(name) for name in self.names]
        self._check_header(kinds)
        return pa.schema(list(zip(self.names, kinds, strict=True)))

    @contextlib.contextmanager
    def _reader(
        self,
        stream: TextStream,
        delimiter: str,
        names: Sequence[str],
        block: int = BLOCK_BYTES,
        ragged: "_Ragged | None" = None,
    ) -> Iterator[tuple[pa.RecordBatchReader, PacedStream]]:
        options = self._options
        paced = PacedStream(stream)
        with contextlib.closing(paced):
            reader = pa_csv.open_csv(
                cast("Any", pa.PythonFile(cast("Any", paced), "r")),
                read_options=pa_csv.ReadOptions(
                    block_size=block,
                    use_threads=False,  # else several blocks are parsed ahead
                    skip_rows=options.skip_lines,
                    column_names=list(options.columns) or None,
                ),
                parse_options=pa_csv.ParseOptions(
                    delimiter=delimiter,
                    quote_char=options.quote or False,
                    escape_char=options.escape or False,
                    newlines_in_values=True,
                    invalid_row_handler=ragged,
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=list(options.nulls),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            yield reader, paced

    def _names(self, delimiter: str, *, lenient: bool) -> list[str]:
        ragged = _Ragged(self._path, BadRows(replace(self._options, max_errors=sys.maxsize))) if lenient else None
        with self._stream() as stream:
            try:
                with self._reader(stream, delimiter, (), _BEGINNING, ragged) as (reader, _):
                    return reader.schema.names
            except pa.ArrowException as error:
                raise self._unreadable(error) from error

    def _found_delimiter(self, *, lenient: bool = False) -> str:
        """The delimiter that gives the most columns, and in each line as many. ``lenient``: where bad lines are left out."""
        counts: dict[str, int] = {}
        misfits: list[CommandError] = []
        for each in _DELIMITERS:
            try:
                counts[each] = len(self._names(each, lenient=lenient))
            except CommandError as error:
                if "Expected 1 columns" not in error.message:
                    misfits.append(error)
        best = max(counts, key=lambda each: counts[each], default=",")
        if misfits and counts.get(best, 1) == 1:
            if self._options.skip_bad and not lenient:
                return self._found_delimiter(lenient=True)
            raise misfits[0]
        if counts.get(best) is not None and list(counts.values()).count(counts[best]) > 1 and counts[best] > 1:
            names = " or ".join(name for each, name in _DELIMITERS.items() if counts.get(each) == counts[best])
            raise refused(f"{self._path.name}: the delimiter may be {names}", "Give --delimiter.")
        return best

    def _check_names(self) -> None:
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice or "" in self.names:
            what = f"has the column {twice[0]!r} more than once" if twice and twice[0] else "has a column without a name"
            raise refused(
                f"{self._path.name} {what}", "Give all names: --columns a,b,…, with --skip-lines 1 to leave the first line out."
            )

    def _check_header(self, kinds: Sequence[pa.DataType]) -> None:
        """Raises CommandError when the first line looks like one of values: as a header it would be missing as a row."""
        if self._options.header or self._options.columns or not any(map(_is_typed, kinds)):
            return
        options = self._options
        for name, kind in zip(self.names, kinds, strict=True):
            column = ColumnInference(options)
            column.add(pa.array([name], pa.string()))
            if _is_typed(kind) and not _is_typed(column.probable()):
                return
        raise refused(
            f"{self._path.name}: the first line ({', '.join(self.names)[:60]}) looks like values, not like names",
            "Give the names of the columns: --columns a,b,…; or --header if these are the names.",
        )

    def _unreadable(self, error: pa.ArrowException) -> CommandError:
        return refused(f"{self._path.name}: {str(error).partition(chr(10))[0][:300]}", _HINT)


class _Ragged:
    """Takes the lines that pyarrow finds to have too few or too many columns. ``error``: what ended the load."""

    def __init__(self, path: Path, bad: BadRows) -> None:
        self._path = path
        self._bad = bad
        self.error: CommandError | None = None

    def __call__(self, row: pa_csv.InvalidRow) -> Literal["skip", "error"]:
        what = (
            f"{self._path.name}: line {row.number} has {row.actual_columns} columns, and the others have {row.expected_columns}"
        )
        try:
            self._bad.take(refused(what, _HINT), row.text or "")
        except CommandError as error:
            self.error = error
            return "error"
        return "skip"


def open_csv(path: Path, types: pa.Schema | None, options: ReadOptions, bad: BadRows | None = None) -> Source:
    """A CSV's rows. ``types``: of columns that need no inference, as a table has them. ``bad`` takes rows that cannot be read.

    Raises CommandError.
    """

    def stream() -> TextStream:
        return TextStream(path, options.encoding)

    file = CsvFile(path, stream, options)
    check_selected(path, file.names, options.select)
    check_casts(path, file.names, options)
    known = {field.name: field.type for field in types or ()} | dict(options.casts)
    if options.select:  # what is not loaded stays text, and may be ambiguous; a rejected line has it
        known |= {name: pa.string() for name in file.names if name not in options.select}
    schema = file.infer(known)
    kinds = {field.name: field.type for field in schema if not pa.types.is_null(field.type)}

    def batches(_skip: int) -> Iterator[FileBatch]:
        taken = bad or BadRows(options)

        def leave_out(error: CommandError, row: pa.RecordBatch) -> None:
            taken.take(error, line_of(row) if options.skip_bad else "")

        return typed(path, file.batches(taken), kinds, options, leave_out)

    def line_of(row: pa.RecordBatch) -> str:
        return csv_line(row, file.delimiter)

    header = line_of(pa.RecordBatch.from_pylist([dict(zip(file.names, file.names, strict=True))]))
    return selected(Source(path, schema, path.stat().st_size, "bytes", batches, header, line_of), options.select)


def _is_typed(kind: pa.DataType) -> bool:
    return not (pa.types.is_string(kind) or pa.types.is_null(kind))


def _spans_lines(batch: pa.RecordBatch) -> bool:
    last = batch.slice(batch.num_rows - 1)
    return any(pc.any(pc.match_substring_regex(column, r"[\r\n]")).as_py() for column in last.columns)
