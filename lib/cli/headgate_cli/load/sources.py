"""Reads files as streams of record batches: Parquet, CSV, JSON lines, Arrow IPC. Memory holds a few batches, not the file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError

FORMATS = ("parquet", "csv", "jsonl", "arrow")
_BY_SUFFIX = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_BLOCK_BYTES = 8 << 20
_PIECE_BYTES = 4 << 20  # a message may have 8 MiB; Arrow's count of bytes is close, not exact
_PIECE_ROWS = 1 << 16


class Piece(NamedTuple):
    """Rows that fit into one message. ``last_row``: number of the last one, from 1; ``done``: how far the file is read."""

    rows: pa.RecordBatch
    last_row: int
    done: int


class _FileBatch(NamedTuple):
    """A batch as the reader gives it. ``before``: rows of the file before it; ``done``: how far the file is read."""

    rows: pa.RecordBatch
    before: int
    done: int


@dataclass(frozen=True, slots=True)
class Source:
    """A file to load. ``total`` counts ``unit``: rows, batches or bytes. ``batches(skip)`` may omit ``skip`` rows."""

    path: Path
    schema: pa.Schema
    total: int
    unit: str
    batches: Callable[[int], Iterator[_FileBatch]]

    def pieces(self, skip: int) -> Iterator[Piece]:
        """Yields all rows after the first ``skip``. Raises CommandError for a damaged file."""
        try:
            for batch, before, done in self.batches(skip):
                rest = batch.slice(max(0, skip - before))
                for start, rows in _cut(rest):
                    yield Piece(rows, before + batch.num_rows - rest.num_rows + start + rows.num_rows, done)
        except pa.ArrowException as error:
            raise _unreadable(self.path, error) from error


def format_of(path: Path) -> str:
    """The format that the file's suffix names. Raises CommandError for an unknown suffix."""
    found = _BY_SUFFIX.get(path.suffix.lower())
    if found is None:
        known = ", ".join(_BY_SUFFIX)
        raise CommandError(
            f"{path.name}: the suffix names no format", fix=f"Give --format, or use one of {known}.", code=ExitCode.USAGE
        )
    return found


def open_source(path: Path, kind: str, types: pa.Schema | None, nulls: Sequence[str] = ("",)) -> Source:
    """A file's rows. ``types``: column types for text formats (CSV, JSON); other columns are inferred from the first 8 MiB.

    ``nulls``: texts that mean null in a CSV. Raises CommandError when the file cannot be read.
    """
    try:
        if kind == "parquet":
            return _parquet(path)
        if kind == "csv":
            return _csv(path, types, nulls)
        return _json(path, types) if kind == "jsonl" else _arrow(path)
    except pa.ArrowException as error:
        raise _unreadable(path, error) from error
    except OSError as error:
        raise CommandError(
            f"{path}: {error.strerror or error}", fix="Check the path and its permissions.", code=ExitCode.FIX_CALL
        ) from error


def _parquet(path: Path) -> Source:
    file = pq.ParquetFile(path, memory_map=False)
    counts = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]

    def batches(skip: int) -> Iterator[_FileBatch]:
        first, before = 0, 0
        while first < len(counts) and before + counts[first] <= skip:
            before += counts[first]
            first += 1
        groups = list(range(first, len(counts)))
        for batch in file.iter_batches(batch_size=_PIECE_ROWS, row_groups=groups) if groups else ():
            yield _FileBatch(batch, before, before + batch.num_rows)
            before += batch.num_rows

    return Source(path, file.schema_arrow, file.metadata.num_rows, "rows", batches)


def _csv(path: Path, types: pa.Schema | None, nulls: Sequence[str]) -> Source:
    convert = pa_csv.ConvertOptions(
        column_types=types,
        null_values=list(nulls),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    read = pa_csv.ReadOptions(block_size=_BLOCK_BYTES)
    return _text(path, lambda file: pa_csv.open_csv(file, read_options=read, convert_options=convert))


def _json(path: Path, types: pa.Schema | None) -> Source:
    parse = pa_json.ParseOptions(explicit_schema=_as_json_writes(types))
    read = pa_json.ReadOptions(block_size=_BLOCK_BYTES)
    source = _text(path, lambda file: pa_json.open_json(file, read_options=read, parse_options=parse))
    dates = {field.name: field.type for field in types or () if pa.types.is_date(field.type)}

    def batches(skip: int) -> Iterator[_FileBatch]:
        for batch, before, done in source.batches(skip):
            yield _FileBatch(_with_dates(batch, dates), before, done)

    return replace(source, batches=batches)


def _as_json_writes(types: pa.Schema | None) -> pa.Schema | None:
    """``types`` with text for dates: JSON has dates as text, but Arrow's reader expects numbers for its date types."""
    if types is None:
        return None
    return pa.schema([field.with_type(pa.string()) if pa.types.is_date(field.type) else field for field in types])


def _with_dates(batch: pa.RecordBatch, dates: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    for name, kind in dates.items():
        at = batch.schema.get_field_index(name)
        batch = batch.set_column(at, name, batch.column(at).cast(kind))
    return batch


def _text(path: Path, reader: Callable[[Any], pa.RecordBatchReader]) -> Source:
    with pa.OSFile(str(path), "rb") as file:
        total = file.size()
        schema = reader(file).schema

    def batches(_skip: int) -> Iterator[_FileBatch]:
        before = 0
        with pa.OSFile(str(path), "rb") as file:
            for batch in reader(file):
                yield _FileBatch(batch, before, file.tell())
                before += batch.num_rows

    return Source(path, schema, total, "bytes", batches)


def _arrow(path: Path) -> Source:
    """Reads both Arrow formats: the file format (Feather) counts its batches, the stream format is read to its end."""
    with pa.OSFile(str(path), "rb") as file:
        if file.read(6) == b"ARROW1":
            reader = pa.ipc.open_file(file)
            return Source(path, reader.schema, reader.num_record_batches, "batches", partial(_file_batches, path))
        total = file.size()
        file.seek(0)
        return Source(path, pa.ipc.open_stream(file).schema, total, "bytes", partial(_stream_batches, path))


def _file_batches(path: Path, _skip: int) -> Iterator[_FileBatch]:
    before = 0
    with pa.OSFile(str(path), "rb") as file:
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            yield _FileBatch(batch, before, number + 1)
            before += batch.num_rows


def _stream_batches(path: Path, _skip: int) -> Iterator[_FileBatch]:
    before = 0
    with pa.OSFile(str(path), "rb") as file:
        for batch in pa.ipc.open_stream(file):
            yield _FileBatch(batch, before, file.tell())
            before += batch.num_rows


def _cut(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yields slices of about equal rows within the limits, with the first row of each."""
    if not batch.num_rows:
        return
    by_size = batch.num_rows * _PIECE_BYTES // max(1, batch.nbytes)
    rows = max(1, min(_PIECE_ROWS, by_size))
    for start in range(0, batch.num_rows, rows):
        yield start, batch.slice(start, rows)


def _unreadable(path: Path, error: Exception) -> CommandError:
    reason = str(error).partition("\n")[0]
    return CommandError(
        f"{path.name}: {reason}",
        fix="Correct the file, or describe it with --format or --null. Rows sent before stay, and are not sent again.",
        code=ExitCode.FIX_CALL,
    )
