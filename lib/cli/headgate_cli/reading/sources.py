"""Opens a file of any format that `headgate load` takes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.reading.arrow_files import open_arrow, open_orc, open_parquet
from headgate_cli.reading.bad_rows import BadRows
from headgate_cli.reading.compression import without_suffix
from headgate_cli.reading.csv_files import open_csv
from headgate_cli.reading.json_files import open_json
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.renaming import file_names, renamed
from headgate_cli.reading.selecting import selected
from headgate_cli.reading.source import FileBatch, Source, unreadable
from headgate_cli.reading.widening import widened

TEXT_FORMATS = ("csv", "jsonl")
"""Rejected rows of these are lines."""
FORMATS = ("parquet", "csv", "jsonl", "arrow", "avro", "orc")
_BY_SUFFIX = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".avro": "avro",
    ".orc": "orc",
}
_AS_IT_IS = ReadOptions()


def format_of(path: Path) -> str:
    """The format that the file's suffix names. Raises CommandError for an unknown suffix."""
    found = _BY_SUFFIX.get(without_suffix(path).suffix.lower())
    if found is None:
        known = ", ".join(_BY_SUFFIX)
        raise CommandError(
            f"{path.name}: the suffix names no format",
            fix=f"Give --format, or use one of {known}, with .gz, .bz2, .xz or .zst.",
            code=ExitCode.USAGE,
        )
    return found


def is_known(path: Path) -> bool:
    """Whether the suffix names a format."""
    return without_suffix(path).suffix.lower() in _BY_SUFFIX


def open_source(
    path: Path, kind: str, types: pa.Schema | None, options: ReadOptions = _AS_IT_IS, bad: BadRows | None = None
) -> Source:
    """A file's rows. ``types``: column types for text formats (CSV, JSON); types of other columns are inferred.

    ``bad`` takes rows that cannot be read, or whose values do not fit. Raises CommandError when the file cannot be read.
    """
    try:
        if options.sql:
            return _queried(path, kind, options, bad)
        given = file_names(types, options.renames)
        source = _text_file(path, kind, given, options, bad)
        if source is None:
            source = widened(_with_raw(selected(_typed_file(path, kind, options), options.select)), options, bad)
        return renamed(source, options.renames) if options.renames else source
    except pa.ArrowException as error:
        raise unreadable(path, error) from error
    except OSError as error:
        raise CommandError(
            f"{path}: {error.strerror or error}", fix="Check the path and its permissions.", code=ExitCode.FIX_CALL
        ) from error


def _queried(path: Path, kind: str, options: ReadOptions, bad: BadRows | None) -> Source:
    """What the SQL makes of a file, whose columns have its own types and those of ``casts``; a table's hold for the result."""
    from headgate_cli.reading.sql import queried

    source = _text_file(path, kind, None, options, bad)
    if source is None:
        source = widened(_typed_file(path, kind, options), options, bad, only_casts=True)
    return widened(queried(source, options), replace(options, casts=(), skip_bad=False))


def _text_file(path: Path, kind: str, types: pa.Schema | None, options: ReadOptions, bad: BadRows | None) -> Source | None:
    """A CSV's or a JSON file's rows; None for other formats."""
    if kind == "csv":
        return open_csv(path, types, options, bad)
    return open_json(path, types, options, bad) if kind == "jsonl" else None


def _with_raw(source: Source) -> Source:
    """``source``, whose rows are also those that a file of rejected ones gets."""

    def batches(skip: int) -> Iterator[FileBatch]:
        return (batch._replace(raw=batch.rows) for batch in source.batches(skip))

    return replace(source, batches=batches)


def _typed_file(path: Path, kind: str, options: ReadOptions) -> Source:
    """A file of a format that knows its types."""
    if kind == "avro":
        from headgate_cli.reading.avro_files import open_avro  # costs other commands nothing

        return open_avro(path)
    if kind == "parquet":
        return open_parquet(path, options.select)
    return open_orc(path) if kind == "orc" else open_arrow(path)
