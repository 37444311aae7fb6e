"""Framing: what is written to the byte, and what is made of damaged bytes."""

import contextlib
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_tables.errors import CorruptFileError, UnsupportedTableError
from headgate_tables.hudi.log.block import Block, BlockKind, HeaderKey, encode_block, read_blocks
from support.golden_logs import golden_logs
from support.strategies import effort

HEADERS = {HeaderKey.INSTANT_TIME: "20261121001053580", HeaderKey.SCHEMA: '{"type":"string"}'}
WRITABLE = [kind for kind in BlockKind if kind is not BlockKind.CORRUPT]


def block_bytes(content: bytes = b"content", kind: BlockKind = BlockKind.PARQUET_DATA) -> bytes:
    """One block with ``HEADERS``."""
    return b"".join(bytes(memoryview(piece)) for piece in encode_block(kind, HEADERS, [content]))


def blocks(content: bytes) -> list[Block]:
    """The blocks of a file of these bytes."""
    return list(read_blocks(pa.py_buffer(content), "f.log"))


def test_a_block_is_framed_as_the_format_says() -> None:
    pieces = encode_block(BlockKind.DELETE, {HeaderKey.INSTANT_TIME: "7"}, [b"ab", memoryview(b"c"), pa.py_buffer(b"de")])
    expected = [
        b"#HUDI#",
        struct.pack(">q", 46),
        struct.pack(">ii", 1, 1),
        struct.pack(">iii", 1, 0, 1) + b"7",
        struct.pack(">q", 5) + b"abcde",
        struct.pack(">i", 0),
        struct.pack(">q", 46 + 6),
    ]
    written = b"".join(bytes(memoryview(piece)) for piece in pieces)
    assert written == b"".join(expected)
    assert len(written) == 46 + 14


def test_content_is_passed_through_uncopied() -> None:
    content = pa.py_buffer(b"x" * 1000)
    pieces = encode_block(BlockKind.PARQUET_DATA, HEADERS, [content])
    assert any(piece is content for piece in pieces)


def test_content_is_read_as_a_slice_of_the_file() -> None:
    file = pa.py_buffer(block_bytes(b"x" * 1000))
    (block,) = read_blocks(file, "f.log")
    assert file.address < block.content.address < file.address + file.size


@effort(100)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(WRITABLE), st.dictionaries(st.sampled_from(HeaderKey), st.text(max_size=20)), st.binary(max_size=50)
        ),
        max_size=4,
    )
)
def test_blocks_read_back_as_written(written: list[tuple[BlockKind, dict[HeaderKey, str], bytes]]) -> None:
    file = b"".join(
        bytes(memoryview(piece)) for kind, headers, content in written for piece in encode_block(kind, headers, [content])
    )
    read = blocks(file)
    assert [(block.kind, dict(block.headers), block.content.to_pybytes()) for block in read] == written
    assert sum(block.size for block in read) == len(file)


@pytest.mark.parametrize(
    "table", ["spark/h120_v8_mor_bucket_np", "spark/h120_v9_mor_partial_update", "spark/h120_v9_mor_logcompaction"]
)
def test_real_log_files_are_reproduced_to_the_byte(table: str) -> None:
    for path, content in golden_logs(table):
        pieces = [
            piece for block in read_blocks(content, path) for piece in encode_block(block.kind, block.headers, [block.content])
        ]
        assert b"".join(bytes(memoryview(piece)) for piece in pieces) == content.to_pybytes()


def test_an_empty_file_has_no_blocks() -> None:
    assert blocks(b"") == []


def test_a_torn_block_is_skipped_and_the_next_is_read() -> None:
    torn, whole = block_bytes(b"torn"), block_bytes(b"whole")
    for cut in range(6, len(torn)):
        read = blocks(torn[:cut] + whole)
        assert [block.kind for block in read] == [BlockKind.CORRUPT, BlockKind.PARQUET_DATA]
        assert read[0].content.to_pybytes() == torn[:cut]
        assert read[1].content.to_pybytes() == b"whole"
        assert read[1].offset == cut


def test_a_file_cut_anywhere_gives_the_blocks_before_the_cut() -> None:
    first, second = block_bytes(b"first"), block_bytes(b"second")
    for cut in range(len(first) + len(second)):
        read = blocks((first + second)[:cut])
        whole = [block.content.to_pybytes() for block in read if block.kind is not BlockKind.CORRUPT]
        assert whole == ([] if cut < len(first) else [b"first"])
        torn = cut - len(first) if cut >= len(first) else cut
        assert (BlockKind.CORRUPT in [block.kind for block in read]) == (torn >= 6)


def test_garbage_behind_a_block_makes_it_corrupt() -> None:
    # As Hudi reads it (HoodieLogFileReader): a block counts only when a magic or the end follows.
    assert [block.kind for block in blocks(block_bytes() + b"garbage")] == [BlockKind.CORRUPT]
    assert [block.kind for block in blocks(block_bytes() + b"#HUD")] == [BlockKind.PARQUET_DATA]


def test_a_wrong_size_at_the_end_makes_a_block_corrupt() -> None:
    file = bytearray(block_bytes(b"first") + block_bytes(b"second"))
    file[len(block_bytes(b"first")) - 1] ^= 1
    assert [block.kind for block in blocks(bytes(file))] == [BlockKind.CORRUPT, BlockKind.PARQUET_DATA]


@pytest.mark.parametrize("size", [-1, 0, 31, 2**62, -(2**62)])
def test_an_impossible_size_makes_a_block_corrupt(size: int) -> None:
    file = bytearray(block_bytes())
    file[6:14] = struct.pack(">q", size)
    assert [block.kind for block in blocks(bytes(file))] == [BlockKind.CORRUPT]


def test_a_file_that_does_not_begin_with_a_block_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match=r"f\.log does not begin with a log block"):
        blocks(b"PAR1PAR1")


@pytest.mark.parametrize(
    ("position", "value", "said"),
    [
        (14, 2, r"f\.log at byte 0: log format version 2"),
        (18, 7, r"f\.log at byte 0: log block of unknown kind 7"),
        (18, 2, r"f\.log at byte 0: log block of unknown kind 2"),
        (26, 9, r"f\.log at byte 0: log block header of unknown kind 9"),
    ],
)
def test_what_a_newer_format_may_hold_is_refused(position: int, value: int, said: str) -> None:
    file = bytearray(block_bytes())
    file[position : position + 4] = struct.pack(">i", value)
    with pytest.raises(UnsupportedTableError, match=said):
        blocks(bytes(file))


@effort(100)
@given(st.data())
def test_a_block_wrong_inside_is_a_typed_error_or_another_block(data: st.DataObject) -> None:
    file = bytearray(block_bytes())
    position = data.draw(st.integers(14, len(file) - 9))
    file[position] ^= 1 << data.draw(st.integers(0, 7))
    with contextlib.suppress(CorruptFileError, UnsupportedTableError):
        assert sum(block.size for block in blocks(bytes(file))) == len(file)


def test_parts_that_do_not_fill_the_block_are_corrupt() -> None:
    file = bytearray(block_bytes(b"content"))
    at = file.index(b"content")
    damage = (
        (6, "header map of"),
        (3, "header map of"),
        (11, "ends inside"),
        (2**40, "longer than the block"),
        (-1, "longer than the block"),
    )
    for length, said in damage:
        file[at - 8 : at] = struct.pack(">q", length)
        with pytest.raises(CorruptFileError, match=said):
            blocks(bytes(file))
