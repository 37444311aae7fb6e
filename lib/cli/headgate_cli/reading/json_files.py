"""JSON lines and arrays of objects: pyarrow parses, with types from the whole file."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.types as pat

from headgate_cli.failures import CommandError
from headgate_cli.reading.inference import TIMES, ColumnInference
from headgate_cli.reading.json_text import JsonBlock, json_blocks
from headgate_cli.reading.json_types import MixedError, Unexpected, altered, inferred, merged, parsed, without_others
from headgate_cli.reading.nested import nested
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.selecting import selected
from headgate_cli.reading.source import FileBatch, Source, refused
from headgate_cli.reading.text_values import Array, MisfitError, convert
from headgate_cli.reading.typed import misfit_error
from headgate_tables.arrow import pc

_CORRECT = "Correct the row, or take the text of a column: --cast 'COLUMN=string'."


class JsonFile:
    """One JSON file. Each pass over it reads it anew; memory holds a block."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self._path = path
        self._options = options
        self._texts = tuple(name for name, kind in options.casts if pat.is_string(kind))
        self._others: Unexpected = "ignore" if options.select else "error"

    def blocks(self) -> Iterator[JsonBlock]:
        """The file's objects, one a line."""
        return json_blocks(self._path, self._options.encoding, self._texts)

    def infer(self, known: pa.Schema) -> pa.Schema:
        """All columns of all rows, or of ``sample_rows``; those without a value are of type null. Raises CommandError.

        Dates and times in texts are found as in a CSV. ``known``: types that are given for columns of the file.
        """
        found = pa.schema([])
        columns: dict[str, ColumnInference] = {}
        before = 0
        for block in self.blocks():
            try:
                rows, found = self._inferred(block.lines, found)
            except (MixedError, pa.ArrowException) as error:
                raise self._wrong_block(block.lines, error, before) from error
            for field in self._chosen(rows.schema):
                if pat.is_string(field.type) and field.name not in known.names:
                    texts = _without_words(rows.column(field.name), self._options)
                    texts = pc.if_else(pc.equal(texts, ""), "a text", texts)  # in JSON, an empty text is not nothing
                    columns.setdefault(field.name, ColumnInference(self._options, TIMES)).add(texts)
            before += rows.num_rows
            if 0 < self._options.sample_rows <= before:
                break
        kinds = {field.name: field.type for field in found} | {name: each.kind(name) for name, each in columns.items()}
        return pa.schema([(name, known.field(name).type if name in known.names else kind) for name, kind in kinds.items()])

    def _inferred(self, lines: bytes, found: pa.Schema) -> tuple[pa.RecordBatch, pa.Schema]:
        try:
            return inferred(lines, found)
        except MixedError as error:
            if not self._options.select or error.name in self._options.select:
                raise
            return inferred(without_others(lines, self._options.select), found)

    def _chosen(self, schema: pa.Schema) -> pa.Schema:
        """What is loaded of ``schema``."""
        names = self._options.select
        return pa.schema([schema.field(name) for name in names if name in schema.names]) if names else schema

    def first_columns(self, known: pa.Schema) -> pa.Schema:
        """``known`` with the columns of the first rows: enough where a table's types hold, since a later field is an error."""
        try:
            lines = next(self.blocks(), JsonBlock(b"", 0)).lines
            return merged(known, inferred(lines, _as_written(known))[1]) if lines else known
        except (MixedError, pa.ArrowException):
            return known  # reading names the row

    def batches(self, schema: pa.Schema) -> Iterator[FileBatch]:
        """All rows with the types of ``schema``. Raises CommandError for a row with another column or no equal value."""
        written = _as_written(self._chosen(schema))
        kinds = {field.name: field.type for field in self._chosen(schema) if field.type != written.field(field.name).type}
        before = 0
        for block in self.blocks():
            try:
                rows = parsed(block.lines, written, self._others)
            except (MixedError, pa.ArrowException) as error:
                raise self._wrong_row(block.lines, written, before) from error
            for at, name, number in altered(block.lines, rows):
                raise refused(
                    f"{self._path.name}: row {before + at + 1}, column {name!r}: {number} is no float64 without loss",
                    f"Take the text: --cast '{name}=string'; or a wider number: --cast '{name}=decimal(38,0)'.",
                )
            yield FileBatch(self._finished(rows, kinds, before), before, block.done)
            before += rows.num_rows

    def _finished(self, rows: pa.RecordBatch, kinds: Mapping[str, pa.DataType], before: int) -> pa.RecordBatch:
        columns = list(rows.columns)
        for at, name in enumerate(rows.schema.names):
            if name in kinds:
                try:
                    columns[at] = nested(columns[at], kinds[name], lambda column, kind: _finished(column, kind, self._options))
                except MisfitError as misfit:
                    raise misfit_error(self._path, name, kinds[name], before, misfit) from misfit
        return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)

    def _wrong_block(self, lines: bytes, error: Exception, before: int) -> CommandError:
        """The error of a block whose rows, each for itself, may be right."""
        rows = [line for line in lines.split(b"\n") if line.strip()]
        broken = next((at for at, line in enumerate(rows) if self._why(line, None)), None)
        if broken is not None:
            return self._wrong_row(rows[broken], None, before + broken)
        if isinstance(error, MixedError):
            return refused(f"{self._path.name}: {error}", f"Take the text of each: --cast '{error.name}=string'.")
        return refused(f"{self._path.name}: rows {before + 1} to {before + len(rows)}: {error}", _CORRECT)

    def _wrong_row(self, lines: bytes, written: pa.Schema | None, before: int) -> CommandError:
        """The error of the first row that cannot be read, found by halves."""
        left = [line for line in lines.split(b"\n") if line.strip()]
        while len(left) > 1:
            half = len(left) // 2
            if self._why(b"\n".join(left[:half]), written):
                left = left[:half]
            else:
                before += half
                left = left[half:]
        why = self._why(left[0], written)
        name, value = self._misfit(left[0], written)
        where = f"row {before + 1}" + (f", column {name!r}: {value}" if name else "")
        if written is not None and name and name not in written.names:
            return refused(f"{self._path.name}: {where}: neither the table nor the rows before have this column", _CORRECT)
        return refused(f"{self._path.name}: {where}: {why}", _CORRECT.replace("COLUMN", name or "COLUMN"))

    def _why(self, lines: bytes, written: pa.Schema | None) -> str:
        """Why lines cannot be read; empty if they can."""
        try:
            parsed(lines, written, "infer" if written is None else self._others)
        except MixedError as error:
            return str(error)
        except pa.ArrowException as error:
            return str(error).partition("\n")[0].removeprefix("JSON parse error: ").removesuffix(" in row 0")
        return ""

    def _misfit(self, line: bytes, written: pa.Schema | None) -> tuple[str, str]:
        """The first column of a row that cannot be read, and its value; empty where the row is no object."""
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            return "", ""
        if not isinstance(row, dict):
            return "", ""
        for name, value in row.items():
            alone = None if written is None else pa.schema([field for field in written if field.name == name])
            if self._why(json.dumps({name: value}).encode(), alone):
                return name, json.dumps(value)[:80]
        return "", ""


def open_json(path: Path, types: pa.Schema | None, options: ReadOptions) -> Source:
    """A JSON file's rows. ``types``: of columns that need no inference, as a table has them. Raises CommandError."""
    file = JsonFile(path, options)
    known = {field.name: field.type for field in types or ()} | dict(options.casts)
    given = pa.schema(list(known.items()))
    schema = file.infer(given) if types is None else file.first_columns(given)
    return selected(Source(path, schema, path.stat().st_size, "bytes", lambda _skip: file.batches(schema)), options.select)


def _as_written(schema: pa.Schema) -> pa.Schema:
    """The types that JSON has for those of ``schema``: texts for dates and times, float64 for float32."""
    return pa.schema([(field.name, _written(field.type)) for field in schema])


def _written(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.StructType):
        return pa.struct([(field.name, _written(field.type)) for field in kind])
    if isinstance(kind, pa.ListType):
        return pa.list_(pa.field("element", _written(kind.value_type)))
    if pat.is_floating(kind):
        return pa.float64()
    return pa.string() if pat.is_date(kind) or pat.is_timestamp(kind) or pat.is_large_string(kind) else kind


def _finished(column: Array, kind: pa.DataType, options: ReadOptions) -> Array:
    """``column``, of no objects and lists, as ``kind``. Raises MisfitError."""
    if pat.is_string(column.type):
        return convert(_without_words(column, options), kind, options)
    values = column.cast(kind, safe=not pat.is_floating(kind))
    if pat.is_floating(kind):
        grown = pc.fill_null(pc.and_(pc.is_inf(values), pc.invert(pc.is_inf(column))), False)
        if pc.any(grown).as_py():
            at = pc.index(grown, True).as_py()
            raise MisfitError(at, str(column[at]), f"too large for {kind}")
    return values


def _without_words(column: Array, options: ReadOptions) -> Array:
    words = [word for word in options.nulls if word]
    if not words:
        return column
    return pc.if_else(pc.is_in(column, value_set=pa.array(words)), pa.scalar(None, pa.string()), column)
