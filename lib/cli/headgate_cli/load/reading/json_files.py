"""JSON lines."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.json as pa_json

from headgate_cli.load.reading.source import BLOCK_BYTES, FileBatch, Source, numbered
from headgate_cli.load.reading.streams import TextStream


def open_json_lines(path: Path, types: pa.Schema | None, encoding: str = "") -> Source:
    """The rows of a file with one JSON object a line. ``types``: of columns; others are inferred from the first block."""
    parse = pa_json.ParseOptions(explicit_schema=_as_json_writes(types))
    read = pa_json.ReadOptions(block_size=BLOCK_BYTES, use_threads=False)
    source = _text(path, encoding, lambda file: pa_json.open_json(file, read_options=read, parse_options=parse))
    dates = {field.name: field.type for field in types or () if pa.types.is_date(field.type)}

    def batches(skip: int) -> Iterator[FileBatch]:
        for batch, before, done in source.batches(skip):
            yield FileBatch(_with_dates(batch, dates), before, done)

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


def _text(path: Path, encoding: str, reader: Callable[[Any], pa.RecordBatchReader]) -> Source:
    with TextStream(path, encoding) as stream:
        schema = reader(pa.PythonFile(cast("Any", stream), "r")).schema

    def batches(_skip: int) -> Iterator[FileBatch]:
        with TextStream(path, encoding) as stream:
            yield from numbered(reader(pa.PythonFile(cast("Any", stream), "r")), stream.done)

    return Source(path, schema, path.stat().st_size, "bytes", batches)
