"""Reads a table's schema from a list of columns, a JSON object or a data file."""

import json
from pathlib import Path

import pyarrow as pa

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.sources import format_of, open_source

_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "bool": pa.bool_(),
    "int": pa.int32(),
    "int32": pa.int32(),
    "long": pa.int64(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "float32": pa.float32(),
    "double": pa.float64(),
    "float64": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ms": pa.timestamp("ms", tz="UTC"),
    "timestamp_local": pa.timestamp("us"),
}


def schema_of_file(path: Path) -> pa.Schema:
    """The schema in a file for ``--schema``: a JSON object of names and types, or lines ``name type``.

    Types: string, binary, bool, int32, int64, float32, float64, date, timestamp (µs UTC), timestamp_ms,
    timestamp_local (which a table stores as UTC), decimal(P,S), and TYPE[] for a list. Raises CommandError.
    """
    try:
        text = path.read_text(encoding="utf-8")
        lines = [line.split(None, 1) for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        columns = json.loads(text) if text.lstrip().startswith("{") else dict(lines)
        return pa.schema([(name, parse_type(str(kind))) for name, kind in columns.items()])
    except OSError as error:
        raise CommandError(
            f"{path}: {error.strerror}", fix="Check the path and its permissions.", code=ExitCode.FIX_CALL
        ) from error
    except ValueError as error:
        raise CommandError(
            f"{path}: {error}",
            fix='Write a line "name type" for each column, or JSON {"name": "type"}; `headgate table create --help` lists types.',
            code=ExitCode.FIX_CALL,
        ) from error


def schema_like(path: Path, kind: str | None = None, reading: ReadOptions | None = None) -> pa.Schema:
    """The schema of a data file for ``--like``; that of text formats is inferred. ``kind``: the file's format."""
    schema = open_source(path, format_of(path, kind), None, reading or ReadOptions()).schema
    return pa.schema([pa.field(field.name, _made(field.type), field.nullable) for field in schema])


def _made(kind: pa.DataType) -> pa.DataType:
    """A column without a single value becomes one of text."""
    return pa.string() if pa.types.is_null(kind) else kind


def parse_type(text: str) -> pa.DataType:
    """The Arrow type of a name in a schema file. Raises ValueError for an unknown name."""
    name = text.strip().lower()
    if name.endswith("[]"):
        return pa.list_(parse_type(name[:-2]))
    if name.startswith("decimal(") and name.endswith(")"):
        precision, _, scale = name[len("decimal(") : -1].partition(",")
        return pa.decimal128(int(precision), int(scale or 0))
    if name not in _TYPES:
        raise ValueError(f"unknown type {text!r}")
    return _TYPES[name]
