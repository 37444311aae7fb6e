"""JSON lines and arrays of objects: pyarrow parses, with types from the whole file."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.types as pat

from headgate_cli.failures import CommandError
from headgate_cli.reading.bad_rows import BadRows
from headgate_cli.reading.inference import TIMES, ColumnInference
from headgate_cli.reading.json_text import JsonBlock, json_blocks
from headgate_cli.reading.json_types import MixedError, Unexpected, altered, inferred, merged, parsed, without
from headgate_cli.reading.nested import nested
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.selecting import check_casts, selected
from headgate_cli.reading.source import FileBatch, Source, refused
from headgate_cli.reading.text_values import Array, MisfitError, convert, is_bytes
from headgate_cli.reading.typed import misfit_error
from headgate_tables.arrow import pc

_CORRECT = "Correct the row, or take the text of a column: --cast 'COLUMN=string'."
_MAPS = "Load the file as Parquet or Arrow, which have maps; or name all other columns with --select: rows have null there then."


class JsonFile:
    """One JSON file. Each pass over it reads it anew; memory holds a block. ``maps``: columns that the table has as maps."""

    def __init__(self, path: Path, options: ReadOptions, maps: Collection[str] = ()) -> None:
        self._path = path
        self._options = options
        self._maps = maps
        self._texts = tuple(name for name, kind in options.casts if pat.is_string(kind))
        self._dropped: set[str] = set()
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
            lines = self._readable(block.lines) if self._options.skip_bad else block.lines
            try:
                rows, found = self._inferred(lines, found, known)
            except (MixedError, pa.ArrowException) as error:
                raise self._wrong_block(lines, error, before) from error
            for field in self._chosen(rows.schema):
                if pat.is_string(field.type) and field.name not in known.names:
                    texts = _without_words(rows.column(field.name), self._options)
                    texts = pc.if_else(pc.equal(texts, ""), "a text", texts)  # in JSON, an empty text is not nothing
                    columns.setdefault(field.name, ColumnInference(self._options, TIMES)).add(texts)
            before += rows.num_rows
            if 0 < self._options.sample_rows <= before:
                break
        found = merged(found, pa.schema([field for field in known if field.name in self._dropped - set(found.names)]))
        kinds = {field.name: field.type for field in found} | {name: each.kind(name) for name, each in columns.items()}
        return pa.schema([(name, known.field(name).type if name in known.names else kind) for name, kind in kinds.items()])

    def _inferred(self, lines: bytes, found: pa.Schema, known: pa.Schema) -> tuple[pa.RecordBatch, pa.Schema]:
        """As ``inferred``, without fields of several kinds that are not loaded or, where rows are left out, of a given type."""
        try:
            return inferred(lines, found)
        except MixedError as error:
            given = error.name in known.names and self._options.skip_bad
            if not given and (not self._options.select or error.name in self._options.select):
                raise
            self._dropped.add(error.name)
            return self._inferred(without(lines, error.name), found, known)

    def _readable(self, lines: bytes) -> bytes:
        """``lines`` without those that are no object, if not all can be read."""
        return b"\n".join(line for line in lines.split(b"\n") if _is_object(line)) if self._why(lines, None) else lines

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

    def batches(self, schema: pa.Schema, bad: BadRows) -> Iterator[FileBatch]:
        """All rows with the types of ``schema``. ``bad`` takes a row with another column or no equal value."""
        chosen = self._chosen(schema)
        before = 0
        for block in self.blocks():
            if bad.takes_more:
                lines = [line for line in block.lines.split(b"\n") if line.strip()]
                runs = list(self._good_rows(lines, chosen, before, bad))
                kept = [at for start, rows in runs for at in range(start - before, start - before + rows.num_rows)]
                raw = pa.record_batch({"line": pa.array([lines[at] for at in kept], pa.binary())})
                gone = tuple(sorted(set(range(len(lines))) - set(kept)))
                yield FileBatch(_joined([rows for _, rows in runs], chosen), before, block.done, raw, gone)
                before += len(lines)
            else:
                rows = self._rows(block.lines, chosen, before)
                yield FileBatch(rows, before, block.done)
                before += rows.num_rows

    def _good_rows(
        self, lines: Sequence[bytes], schema: pa.Schema, before: int, bad: BadRows
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows that can be read, in runs with the number of rows before each; ``bad`` takes the others, found by halves."""
        try:
            rows = self._rows(b"\n".join(lines), schema, before)
            if rows.num_rows != len(lines):
                raise refused(f"{self._path.name}: row {before + 1}: more than one object in a line", _CORRECT)
        except CommandError as error:
            if len(lines) == 1:
                bad.take(error, lines[0].decode())
                return
            half = len(lines) // 2
            yield from self._good_rows(lines[:half], schema, before, bad)
            yield from self._good_rows(lines[half:], schema, before + half, bad)
        else:
            yield before, rows

    def _rows(self, lines: bytes, schema: pa.Schema, before: int) -> pa.RecordBatch:
        """The rows of a block. Raises CommandError for one with another column or no equal value."""
        written = _as_written(schema)
        kinds = {field.name: field.type for field in schema if field.type != written.field(field.name).type}
        try:
            rows = parsed(lines, written, self._others)
        except (MixedError, pa.ArrowException) as error:
            raise self._wrong_row(lines, written, before) from error
        try:
            changed = next(altered(lines, rows), None)
        except ValueError as error:
            raise refused(f"{self._path.name}: rows {before + 1} and later: more than one object in a line", _CORRECT) from error
        if changed is not None:
            at, name, number = changed
            raise refused(
                f"{self._path.name}: row {before + at + 1}, column {name!r}: {number} is no float64 without loss",
                f"Take the text: --cast '{name}=string'; or a wider number: --cast '{name}=decimal(38,0)'.",
            )
        return self._finished(rows, kinds, before)

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
        if name in self._maps and "null and" in why:
            return refused(f"{self._path.name}: {where}: the table has a map there, and an object of JSON is none", _MAPS)
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


def open_json(path: Path, types: pa.Schema | None, options: ReadOptions, bad: BadRows | None = None) -> Source:
    """A JSON file's rows. ``types``: of columns that need no inference, as a table has them. Raises CommandError.

    ``bad`` takes rows that cannot be read.
    """
    known = {field.name: field.type for field in types or ()} | dict(options.casts)
    file = JsonFile(path, options, {name for name, kind in known.items() if _has_map(kind)})
    given = pa.schema(list(known.items()))
    schema = file.infer(given) if types is None else file.first_columns(given)
    if types is None and schema.names and not options.sample_rows:
        check_casts(path, schema.names, options)
    size = path.stat().st_size
    source = Source(path, schema, size, "bytes", lambda _skip: file.batches(schema, bad or BadRows(options)), "", _line_of)
    return selected(source, options.select)


def _line_of(row: pa.RecordBatch) -> str:
    line: bytes = row.column(0)[0].as_py()
    return line.decode()


def _joined(parts: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    if len(parts) == 1:
        return parts[0]
    whole = pa.Table.from_batches(parts, schema).combine_chunks()
    return whole.to_batches()[0] if whole.num_rows else pa.RecordBatch.from_pylist([], schema=schema)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _has_map(kind: pa.DataType) -> bool:
    return pat.is_map(kind) or any(_has_map(kind.field(at).type) for at in range(kind.num_fields))


def _as_written(schema: pa.Schema) -> pa.Schema:
    """The types that JSON has for those of ``schema``: texts for dates, times and bytes, float64 for float32, null for maps."""
    return pa.schema([(field.name, _written(field.type)) for field in schema])


def _written(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.StructType):
        return pa.struct([(field.name, _written(field.type)) for field in kind])
    if isinstance(kind, pa.ListType):
        return pa.list_(pa.field("element", _written(kind.value_type)))
    if pat.is_floating(kind):
        return pa.float64()
    if pat.is_map(kind):
        return pa.null()
    as_text = pat.is_date(kind) or pat.is_timestamp(kind) or pat.is_large_string(kind) or is_bytes(kind)
    return pa.string() if as_text else kind


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
