"""Small blocks of Avro rows that are decoded together: each gives its own rows, or is read by itself."""

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.log import together
from headgate_tables.hudi.log.avro_encode import encode_rows
from headgate_tables.hudi.log.avro_rows import decode_together
from headgate_tables.hudi.log.block import BlockKind, HeaderKey, encode_block
from headgate_tables.hudi.log.reader import RowsBlock, read_log_file
from headgate_tables.hudi.log.together import read_together
from headgate_tables.hudi.schema.arrow_to_avro import avro_schema

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])


def rows_of(*numbers: int, schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in numbers], "n": list(numbers)}).cast(schema)


def content_of(rows: pa.Table, count: int | None = None) -> bytes:
    columns: list[Any] = [column.chunk(0) for column in rows.columns]
    encoded = encode_rows(columns, rows.schema).content.to_pybytes()
    return struct.pack(">ii", 3, rows.num_rows if count is None else count) + encoded


def blocks_of(contents: Sequence[bytes], schemas: Sequence[pa.Schema] | None = None) -> list[RowsBlock]:
    found = []
    for number, content in enumerate(contents):
        schema = avro_schema(schemas[number] if schemas else SCHEMA, "t", meta_columns=False)
        headers = {HeaderKey.INSTANT_TIME: "1", HeaderKey.SCHEMA: schema}
        file = b"".join(bytes(piece) for piece in encode_block(BlockKind.AVRO_DATA, headers, [content]))
        [block] = read_log_file(pa.py_buffer(file), f"file {number}", lambda _: True, strict=True)
        assert isinstance(block, RowsBlock)
        found.append(block)
    return found


def shared(blocks: Sequence[RowsBlock]) -> list[RowsBlock]:
    return [block for block in read_together(blocks) if isinstance(block, RowsBlock)]


def test_each_block_gives_its_own_rows_in_any_order_and_of_any_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two schemas, and of two groups of the first one."""
    wide = SCHEMA.append(pa.field("more", pa.string()))
    tables = [rows_of(1, 2), rows_of(3), rows_of(4, 5, 6), rows_of(7)]
    wider = [each.append_column("more", pa.array([str(n) for n in each["n"].to_pylist()])) for each in (rows_of(8), rows_of(9))]
    contents = [content_of(each) for each in [*tables, *wider]]
    monkeypatch.setattr(together, "_GROUP_BYTES", len(contents[0]) + len(contents[1]))
    blocks = shared(blocks_of(contents, [SCHEMA] * 4 + [wide] * 2))
    for columns in (None, ["id"], ["n", "more"]):
        for number in (0, 1, 2, 3, 4, 5, 3, 0, 5):
            whole = [*tables, *wider][number]
            names = [name for name in whole.column_names if columns is None or name in columns]
            assert blocks[number].read(columns).equals(whole.select(names)), (columns, number)


def test_a_block_whose_schema_only_names_a_column_otherwise_keeps_its_names() -> None:
    """The bytes of the rows fit either schema."""
    other = pa.schema([("id", pa.string()), ("m", pa.timestamp("us", tz="UTC"))])
    renamed = pa.table([rows_of(3)["id"], rows_of(3)["n"].cast(other.field("m").type)], schema=other)
    tables = [rows_of(1), rows_of(2), renamed, renamed, rows_of(4)]
    blocks = shared(blocks_of([content_of(each) for each in tables], [each.schema for each in tables]))
    for block, whole in zip(blocks, tables, strict=True):
        assert block.read().equals(whole)


def test_blocks_in_order_are_decoded_once_for_each_set_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []
    right = together.decode_together
    monkeypatch.setattr(together, "decode_together", lambda *of: (decoded.append(len(of[0])), right(*of))[1])
    blocks = shared(blocks_of([content_of(rows_of(n, n + 1)) for n in range(10)]))
    for columns in (["id"], ["id", "n"]):
        for block in blocks:
            block.read(columns)
    assert decoded == [10, 10]


def test_a_damaged_block_is_named_and_the_others_are_read() -> None:
    contents = [content_of(rows_of(n)) for n in range(3)]
    contents[1] = contents[1][:-1]
    blocks = shared(blocks_of(contents))
    assert blocks[0].read().equals(rows_of(0))
    with pytest.raises(CorruptFileError, match="file 1 at byte 0"):
        blocks[1].read()
    assert blocks[2].read().equals(rows_of(2))


def test_counts_that_add_up_but_are_not_the_blocks_own_are_found() -> None:
    schema = avro_schema(SCHEMA, "t", meta_columns=False)
    contents = [content_of(rows_of(1, 2), 1), content_of(rows_of(3, 4), 3)]
    assert decode_together([pa.py_buffer(each) for each in contents], schema, None) is None
    for number, block in enumerate(shared(blocks_of(contents))):
        with pytest.raises(CorruptFileError, match=f"file {number} at byte 0"):
            block.read()


def test_an_empty_block_and_one_without_the_columns_are_read_with_the_others() -> None:
    blocks = shared(blocks_of([content_of(rows_of(1)), content_of(rows_of(2).slice(0, 0), 0), content_of(rows_of(3))]))
    assert [block.read().num_rows for block in blocks] == [1, 0, 1]
    assert [block.read(["none"]).num_rows for block in blocks] == [1, 0, 1]
