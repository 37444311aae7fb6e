"""Files that somebody made to hurt whoever reads them: refused by name, before time or memory is spent on them."""

from __future__ import annotations

import io
import json
import re
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.fields import Json
from headgate_tables.errors import MOST_CHARACTERS, CorruptFileError, UnsupportedTableError
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.log import avro_rows
from headgate_tables.hudi.log.avro_binary import varint
from headgate_tables.hudi.log.block import BlockKind, encode_block
from headgate_tables.hudi.log.reader import RowsBlock, read_log_file
from headgate_tables.hudi.properties import parse
from headgate_tables.hudi.schema.avro_to_arrow import arrow_schema
from headgate_tables.hudi.timeline.commit_metadata import decode_commit
from support.damage import changed, full, layered_table, path_of
from support.golden import unpack
from support.refusals import refused
from support.tables import create

LONG_S = 5.0
EMPTY_RECORD = {"type": "record", "name": "e", "fields": []}
NAME = "org.apache.hudi.avro.model.HoodieCommitMetadata"


def container(schema: dict[str, Any], body: bytes, *, codec: bytes = b"null", count: int = 1) -> bytes:
    """An Avro container of one block."""

    def entry(key: bytes, value: bytes) -> bytes:
        return varint(len(key)) + key + varint(len(value)) + value

    meta = entry(b"avro.schema", json.dumps(schema).encode()) + entry(b"avro.codec", codec)
    return b"Obj\x01" + varint(2) + meta + b"\x00" + bytes(16) + varint(count) + varint(len(body)) + body + bytes(16)


def record(kind: object) -> dict[str, Any]:
    return {"type": "record", "name": NAME, "fields": [{"name": "f", "type": kind}]}


MANY = varint(1 << 22) + b"\x00"
"""Enough to show that their number does not matter, and few enough for a reader that believes it."""
CONTAINERS = {
    "a null that is no choice": container(record({"type": "array", "items": "null"}), MANY),
    "a record without fields": container(record({"type": "array", "items": EMPTY_RECORD}), MANY),
    "a fixed of no bytes": container(record({"type": "array", "items": {"type": "fixed", "name": "z", "size": 0}}), MANY),
    "it is compressed": container(record("bytes"), zlib.compress(varint(1 << 20) + bytes(1 << 20))[2:-4], codec=b"deflate"),
    "EOFError|StopIteration|[Ee]xpected|is missing": container(record("bytes"), varint(1 << 60)),
    "negative|EOFError|[Ee]xpected|StopIteration|is missing": container(record("string"), varint(-5)),
    "[Tt]ype|recor": container({"type": "recor"}, b""),
    "EOF|StopIteration|Struct|struct|[Ee]xpected": container(record("long"), b"", count=1 << 50),
}


@pytest.mark.parametrize(("why", "content"), CONTAINERS.items(), ids=range(len(CONTAINERS)))
def test_metadata_that_unfold_into_more_than_their_bytes_are_refused(why: str, content: bytes) -> None:
    began = time.process_time()
    with refused(CorruptFileError, f"20260101.commit is not a HoodieCommitMetadata.*({why})", "Restore"):
        decode_commit(content, "20260101.commit")
    assert time.process_time() - began < LONG_S


def doubling(levels: int) -> dict[str, Any]:
    """Each record has the one before twice: two to the power of ``levels`` columns in a few kilobytes."""
    schema: Any = {"type": "record", "name": "r0", "fields": [{"name": "x", "type": "int"}]}
    for level in range(1, levels):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"r{level - 1}"}]
        schema = {"type": "record", "name": f"r{level}", "fields": fields}
    return {"type": "record", "name": "row", "fields": [{"name": "top", "type": schema}]}


SCHEMAS: dict[str, dict[str, Any]] = {
    "doubling": doubling(40),
    "a fixed of no bytes": record({"type": "fixed", "name": "z", "size": 0}),
    "a fixed that fills memory": record(["null", {"type": "fixed", "name": "z", "size": 1 << 30}]),
    "a fixed beyond all": record({"type": "fixed", "name": "z", "size": 1 << 70}),
    "a record without fields": record({"type": "array", "items": EMPTY_RECORD}),
}


DEEP = '{"type": "array", "items": ' * 5000 + '"int"' + "}" * 5000
TEXTS = {name: json.dumps(schema) for name, schema in SCHEMAS.items()} | {
    "nested too deep": json.dumps(record("DEEP")).replace('"DEEP"', DEEP)
}


@pytest.mark.parametrize("schema", TEXTS.values(), ids=TEXTS)
def test_a_schema_that_unfolds_without_end_is_refused(schema: str) -> None:
    began = time.process_time()
    with pytest.raises((CorruptFileError, UnsupportedTableError), match=r"^log at byte 5") as caught:
        arrow_schema(schema, "log at byte 5")
    assert time.process_time() - began < LONG_S
    assert len(str(caught.value)) < MOST_CHARACTERS + 500


def test_a_schema_of_many_columns_is_not() -> None:
    fields = [{"name": f"c{number}", "type": ["null", {"type": "array", "items": "string"}]} for number in range(3000)]
    assert len(arrow_schema(json.dumps({"type": "record", "name": "row", "fields": fields}), "")) == 3000


def test_a_schema_of_more_characters_than_any_is_refused() -> None:
    with refused(CorruptFileError, "not an Avro schema", "Restore"):
        arrow_schema(" " * (17 << 20), "log")


def test_an_avro_block_of_rows_without_bytes_is_refused() -> None:
    schema = json.dumps(record({"type": "array", "items": EMPTY_RECORD}))
    body = varint(1 << 40) + b"\x00"
    content = b"\x00\x00\x00\x03\x00\x00\x00\x01" + len(body).to_bytes(4, "big") + body
    with pytest.raises(UnsupportedTableError, match="without fields"):
        avro_rows.decode(pa.py_buffer(content), schema, None, "log")


def test_properties_that_go_on_from_line_to_line_are_read_in_one_pass() -> None:
    began = time.process_time()
    found = parse(b"a\\\n" * 300_000 + b"=b\n", "hoodie.properties")
    assert found == {"a" * 300_000: "b"}
    assert time.process_time() - began < LONG_S


CONFIGS: dict[str, Callable[[dict[str, Json]], dict[str, Json]]] = {
    "buckets": lambda config: config | {"buckets": 10**30},
    "no buckets": lambda config: config | {"buckets": 0},
    "key_groups": lambda config: config | {"key_groups": 1 << 62},
    "record key": lambda config: config | {"record_key": ["nobody"]},
    "no column": lambda config: config | {"ordering": "nobody"},
    "name": lambda config: config | {"name": "../../etc"},
    "schema": lambda config: config | {"schema": "AAAA"},
}


@pytest.mark.parametrize("change", CONFIGS.values(), ids=CONFIGS)
def test_a_definition_that_makes_no_sense_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Json]], dict[str, Json]]
) -> None:
    definition = create(tmp_path).definition
    assert definition is not None
    with refused(CorruptFileError, "CONFIG slot is damaged|holds no Arrow schema", "Restore"):
        Definition.decode(change(definition.encode()))


def test_an_archived_instant_without_a_time_is_damage(tmp_path: Path) -> None:
    path = Path(unpack("h120_v9_mor_archived", tmp_path))
    (path / ".of-an-archived-instant-0_20261120235658651.log.1_0-1-1").touch()
    [file] = sorted((path / ".hoodie/timeline/history").glob("20261120235658651_*.parquet"))
    rows = pq.read_table(file)
    sink = io.BytesIO()
    pq.write_table(rows.set_column(0, "instantTime", pa.nulls(rows.num_rows, pa.string())), sink)
    with changed(file, sink.getvalue()), refused(CorruptFileError, "a row without an instant", "Restore"):
        hudi.open_table(str(path)).scan()


def test_a_page_that_says_it_is_two_gigabytes_takes_no_such_memory(tmp_path: Path) -> None:
    """The reader of a page would take what its header says, and only then look what is there."""
    table = hudi.open_table(str(layered_table(tmp_path)))
    path = path_of(table, "base")
    file = full(table, path)
    content = file.read_bytes()
    first = pq.read_metadata(file).row_group(0).column(0)
    at = min(first.dictionary_page_offset or first.data_page_offset, first.data_page_offset)
    header = content[at : at + 40]
    # Thrift: kind, uncompressed size, compressed size, each a zigzag number behind 0x15.
    found = re.match(rb"\x15.\x15([\x80-\xff]*[\x00-\x7f])\x15([\x80-\xff]*[\x00-\x7f])", header, re.DOTALL)
    assert found is not None
    start, _ = found.span(2)
    huge = varint((1 << 31) - 1)
    crafted = content[: at + start] + huge + content[at + start + len(huge) :]
    pool, before = pa.default_memory_pool(), pa.default_memory_pool().max_memory()
    with changed(file, crafted), refused(CorruptFileError, re.escape(path), "Restore"):
        table.scan(meta_columns=True).to_table()
    assert (pool.max_memory() or 0) - (before or 0) < 64 << 20


def test_a_block_of_more_rows_than_its_bytes_can_have_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    table = hudi.open_table(str(layered_table(tmp_path)))
    path = path_of(table, "rows")
    content = full(table, path).read_bytes()
    [block] = read_log_file(pa.py_buffer(content), path, lambda _: True)
    assert isinstance(block, RowsBlock)
    row = block.read(["_hoodie_record_key"]).slice(0, 1)
    sink = pa.BufferOutputStream()
    pq.write_table(row.take(pa.array([0] * 1_400_000)), sink, store_schema=False)
    pieces = encode_block(BlockKind.PARQUET_DATA, block.block.headers, [sink.getvalue()])
    crafted = b"".join(bytes(memoryview(piece)) for piece in pieces)
    with changed(full(table, path), crafted), refused(CorruptFileError, "1400000 rows in [0-9]+ bytes", "Restore"):
        table.scan().to_table()


def test_a_message_that_quotes_a_file_is_cut() -> None:
    error = CorruptFileError("x" * 100_000 + "end", fix="Restore it.")
    assert len(error.message) < MOST_CHARACTERS + 10
    assert error.message.endswith("end")
    assert str(error).endswith("end. Restore it.")
