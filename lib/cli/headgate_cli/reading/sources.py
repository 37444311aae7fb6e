"""Opens a file of any format that `headgate load` takes."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path, PurePath

import pyarrow as pa

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.reading.arrow_files import open_arrow, open_orc, open_parquet
from headgate_cli.reading.bad_rows import BadRows
from headgate_cli.reading.compression import without_suffix
from headgate_cli.reading.csv_files import open_csv
from headgate_cli.reading.hive_folders import folder_type, folder_values, with_folder_columns
from headgate_cli.reading.json_files import open_json
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.renaming import file_names, renamed
from headgate_cli.reading.selecting import check_casts, check_once, selected
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


def format_of(path: Path, given: str | None = None) -> str:
    """The format that is given; without one, that of the file's suffix. Raises CommandError for an unknown suffix."""
    if given:
        return given
    found = _BY_SUFFIX.get(without_suffix(path).suffix.lower())
    if found is None:
        known = ", ".join(_BY_SUFFIX)
        raise CommandError(
            f"{path.name}: the suffix names no format",
            fix=f"Give --format, or use one of {known}, with .gz, .bz2, .xz or .zst.",
            code=ExitCode.USAGE,
        )
    return found


def is_data(path: PurePath) -> bool:
    """Whether a file counts when the folder is loaded from which ``path`` leads: its suffix names a format, and nothing on the
    way is hidden or a program's marker.
    """
    return not any(part.startswith((".", "_")) for part in path.parts) and without_suffix(path).suffix.lower() in _BY_SUFFIX


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
        source = _with_folders(path, given, options, lambda known, inner: _file(path, kind, known, inner, bad))
        source = selected(source, options.select)
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

    def opened(_: pa.Schema | None, inner: ReadOptions) -> Source:
        found = _text_file(path, kind, None, inner, bad)
        return found or widened(_typed_file(path, kind, inner), inner, bad, only_casts=True)

    source = _with_folders(path, None, options, opened)
    return widened(queried(source, options), replace(options, casts=(), skip_bad=False))


def _file(path: Path, kind: str, types: pa.Schema | None, options: ReadOptions, bad: BadRows | None) -> Source:
    """A file's rows with types that a table holds."""
    found = _text_file(path, kind, types, options, bad)
    return found or widened(_with_raw(selected(_typed_file(path, kind, options), options.select)), options, bad)


def _with_folders(
    path: Path, types: pa.Schema | None, options: ReadOptions, opened: Callable[[pa.Schema | None, ReadOptions], Source]
) -> Source:
    """What ``opened`` makes of types and options, with the columns in the names of the file's folders.

    A column of the file itself counts more than one of a folder. Of a table that exists, folders give the columns that it has.
    """
    values = folder_values(path)
    if not values:
        return opened(types, options)
    names = [name for name in values if types is None or name in types.names]
    source = opened(_without_columns(types, names), _without(options, names))
    if any(name in source.schema.names for name in names):
        names = [name for name in names if name not in source.schema.names]
        source = opened(_without_columns(types, names), _without(options, names))
    if options.select:
        names = [name for name in names if name in options.select]
    known = dict(options.casts) if types is None else {field.name: field.type for field in types}
    columns = {name: known.get(name) or folder_type(name, options.files or (path,), options) for name in names}
    return with_folder_columns(source, columns, options)


def _without(options: ReadOptions, columns: Collection[str]) -> ReadOptions:
    """``options`` for the file itself, without ``columns``."""
    casts = tuple(each for each in options.casts if each[0] not in columns)
    return replace(options, casts=casts, select=tuple(name for name in options.select if name not in columns))


def _without_columns(types: pa.Schema | None, columns: Collection[str]) -> pa.Schema | None:
    return None if types is None else pa.schema([field for field in types if field.name not in columns])


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
    """A file of a format that knows its types. Raises CommandError for two columns of one name and a cast of none."""
    source = _opened(path, kind, options)
    check_once(path, source.schema.names, options.select)
    check_casts(path, source.schema.names, options)
    return source


def _opened(path: Path, kind: str, options: ReadOptions) -> Source:
    if kind == "avro":
        from headgate_cli.reading.avro_files import open_avro  # costs other commands nothing

        return open_avro(path)
    if kind == "parquet":
        return open_parquet(path, options.select)
    return open_orc(path) if kind == "orc" else open_arrow(path)
