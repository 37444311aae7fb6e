"""Rows to log block bytes and back, without storage: 17 columns (12 and Hudi's five), the CPU of one process."""

import io
import json
import struct
from collections.abc import Callable
from statistics import median
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from fastavro.types import Schema

from bench.tables.usage import Moment, peak_bytes
from support.events import events, with_meta

_INSTANT = "20260201000000000"
_FILE_ID = "00000000-7c1f-4b5e-9a51-0c7f4a3e9d10-0"


def encode_parquet(contender: str, rows: int, times: int) -> dict[str, float]:
    """Rows with their meta columns to the bytes of one block. ``contender``: ``headgate`` or ``pyarrow`` (with its defaults)."""
    plain = events(rows)
    if contender == "headgate":
        from headgate_tables.hudi.log.parquet_rows import ParquetLayout, encode
        from headgate_tables.hudi.schema.meta_columns import attach_meta, sequence_numbers

        layout = ParquetLayout(stats=["event_id", "version"])
        stored = attach_meta(
            plain,
            plain["event_id"],
            sequence_numbers(_INSTANT, plain.num_rows),
            instant=_INSTANT,
            partition="",
            file_name=_FILE_ID,
        )

        def block() -> int:
            return encode(stored, layout).size
    else:
        stored = with_meta(plain, _INSTANT, _FILE_ID)

        def block() -> int:
            sink = pa.BufferOutputStream()
            pq.write_table(stored, sink)
            return sink.getvalue().size

    size = block()
    return {"rows_per_cpu_s": rows / _cpu(block, times), "bytes_per_row": size / rows, "peak": peak_bytes()}


def decode_avro(contender: str, rows: int, times: int) -> dict[str, float]:
    """A block's content that fastavro wrote, to an Arrow table. ``contender``: ``headgate`` or ``fastavro`` (row by row)."""
    from headgate_tables.hudi.log.avro_rows import decode
    from headgate_tables.hudi.schema.arrow_to_avro import avro_schema

    stored = with_meta(events(rows), _INSTANT, _FILE_ID)
    schema_json = avro_schema(stored.schema, "events", meta_columns=True)
    schema = fastavro.parse_schema(json.loads(schema_json))
    content = _avro_block(stored, schema)
    decoded = decode(content, schema_json, None, "the block")
    if decoded.select(stored.column_names) != stored:
        raise AssertionError("the block was decoded to other rows")

    def by_row() -> pa.Table:
        return pa.Table.from_pylist(list(_records(content, schema)), schema=stored.schema)

    work = by_row if contender == "fastavro" else lambda: decode(content, schema_json, None, "the block")
    return {"rows_per_cpu_s": rows / _cpu(work, times), "bytes_per_row": content.size / rows, "peak": peak_bytes()}


def _cpu(work: Callable[[], object], times: int) -> float:
    used = []
    for _ in range(times):
        begin = Moment.now()
        work()
        used.append((Moment.now() - begin).cpu)
    return median(used)


def _avro_block(rows: pa.Table, schema: Schema) -> pa.Buffer:
    """Content version 3: version, row count, then each row's length and Avro bytes."""
    content = io.BytesIO()
    content.write(struct.pack(">ii", 3, rows.num_rows))
    for row in rows.to_pylist():
        record = io.BytesIO()
        fastavro.schemaless_writer(record, schema, row)
        content.write(struct.pack(">i", record.tell()) + record.getvalue())
    return pa.py_buffer(content.getvalue())


def _records(content: pa.Buffer, schema: Schema) -> Any:
    stream = io.BytesIO(content)
    _, count = struct.unpack(">ii", stream.read(8))
    for _ in range(count):
        stream.seek(4, io.SEEK_CUR)
        yield fastavro.schemaless_reader(stream, schema, None)
