"""Avro files: fastavro reads their rows."""

import json
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa

from headgate_cli.reading.source import FileBatch, Source, numbered, unreadable
from headgate_tables.errors import TablesError
from headgate_tables.opening import columns_of_avro

_ROWS = 1 << 13
_DAMAGED = (ValueError, EOFError, KeyError, TypeError, IndexError, OverflowError, pa.ArrowException)
"""What fastavro raises for a file that is none, or is damaged, beside OSError."""


def open_avro(path: Path) -> Source:
    """An Avro file's rows. Raises OSError, and CommandError for a damaged file or a type that no table has."""
    try:
        with path.open("rb") as file:
            schema = columns_of_avro(json.dumps(fastavro.block_reader(file).writer_schema), path.name)
    except TablesError as error:
        raise unreadable(path, error, "Write the file with one type a column: Parquet, JSON or CSV have them.") from error
    except _DAMAGED as error:
        raise unreadable(path, error) from error
    return Source(path, schema, path.stat().st_size, "bytes", lambda _skip: _batches(path, schema))


def _batches(path: Path, schema: pa.Schema) -> Iterator[FileBatch]:
    with path.open("rb") as file:
        try:
            rows: Iterator[Any] = chain.from_iterable(fastavro.block_reader(file))
            yield from numbered(_in_batches(rows, schema), file.tell)
        except _DAMAGED as error:
            raise unreadable(path, error) from error


def _in_batches(rows: Iterator[Mapping[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    while taken := list(islice(rows, _ROWS)):
        columns = [_column([row[field.name] for row in taken], field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(values: list[Any], kind: pa.DataType) -> "pa.Array[Any]":
    if pa.types.is_string(kind):
        values = [str(value) if isinstance(value, UUID) else value for value in values]
    return pa.array(values, kind)
