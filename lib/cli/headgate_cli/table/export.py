"""Rows as CSV, JSON lines, Parquet or an Arrow stream, in a file or on stdout, batch by batch."""

import io
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Literal, assert_never

import pyarrow as pa

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.output import as_text
from headgate_cli.table.json_lines import is_binary, json_lines
from headgate_cli.table.python_rows import python_values

Format = Literal["csv", "json", "parquet", "arrow"]
_SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
}


def format_of(target: Path | None, given: Format | None) -> Format | None:
    """The form of the rows; None for a terminal's table. Raises CommandError when the file's name does not say it."""
    if given is not None or target is None:
        return given
    if target.suffix.lower() not in _SUFFIXES:
        raise CommandError(
            f"--output {target}: the name does not say which form the rows get",
            fix=f"Add --format, or end the name with one of {', '.join(_SUFFIXES)}.",
            code=ExitCode.USAGE,
        )
    return _SUFFIXES[target.suffix.lower()]


def export(batches: Iterable[pa.RecordBatch], schema: pa.Schema, kind: Format, target: Path | None) -> int:
    """Writes the rows to the file, or without one (or for ``-``) to stdout, and returns how many there are.

    A file gets its name when it is whole. Raises OSError; BrokenPipeError when stdout's reader has enough.
    """
    if target is None or str(target) == "-":
        return _write(batches, schema, kind, sys.stdout.buffer)
    part = target.with_name(f"{target.name}.part")
    try:
        with part.open("wb") as file:
            rows = _write(batches, schema, kind, file)
        part.replace(target)
    except OSError as error:
        if str(error.filename) != str(part):
            raise
        raise OSError(error.errno, error.strerror, str(target)) from error
    finally:
        part.unlink(missing_ok=True)
    return rows


def print_batches(batches: Iterable[pa.RecordBatch]) -> None:
    """Prints rows as JSON lines."""
    _write_lines(batches, json_lines, sys.stdout.buffer)


def _write(batches: Iterable[pa.RecordBatch], schema: pa.Schema, kind: Format, file: IO[bytes]) -> int:
    match kind:
        case "csv":
            return _write_lines(batches, csv_lines, file, head=_csv(schema.empty_table(), header=True))
        case "json":
            return _write_lines(batches, json_lines, file)
        case "parquet":
            import pyarrow.parquet as pq

            with pq.ParquetWriter(pa.PythonFile(_Kept(file), mode="w"), schema, compression="zstd") as writer:
                return sum(_counted(writer.write_batch, batch) for batch in batches)
        case "arrow":
            with pa.ipc.new_stream(pa.PythonFile(_Kept(file), mode="w"), schema) as stream:
                return sum(_counted(stream.write_batch, batch) for batch in batches)
        case _:
            assert_never(kind)


def _write_lines(
    batches: Iterable[pa.RecordBatch], encode: Callable[[pa.RecordBatch], bytes], file: IO[bytes], head: bytes = b""
) -> int:
    file.write(head)
    rows = 0
    for batch in batches:
        file.write(encode(batch))
        file.flush()  # so that a reader of the pipe sees rows as they come
        rows += batch.num_rows
    return rows


def _counted(write: Callable[[pa.RecordBatch], object], batch: pa.RecordBatch) -> int:
    write(batch)
    return batch.num_rows


def csv_lines(batch: pa.RecordBatch) -> bytes:
    """CSV without a header: text in quotes, null nothing at all; lists and structs as JSON, binary values hexadecimal."""
    return _csv(pa.Table.from_batches([batch]), header=False)


def _csv(rows: pa.Table, *, header: bool) -> bytes:
    import pyarrow.csv as pa_csv

    for position, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type) or is_binary(field.type):
            texts = [_nested(value) for value in python_values(rows.column(position).combine_chunks())]
            rows = rows.set_column(position, field.name, pa.array(texts, pa.string()))
    text = io.BytesIO()
    pa_csv.write_csv(rows, text, pa_csv.WriteOptions(include_header=header))
    return text.getvalue()


def _nested(value: object) -> str | None:
    if value is None:
        return None
    return value.hex() if isinstance(value, bytes) else json.dumps(value, default=as_text, ensure_ascii=False)


class _Kept(io.RawIOBase):
    """A file that a writer of pyarrow may close while others go on with it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        return self._file.write(memoryview(data))  # type: ignore[arg-type] # any buffer

    def flush(self) -> None:
        if not self.closed:
            self._file.flush()
