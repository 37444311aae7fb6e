"""Blocks found without their contents are those that are found with them."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables.errors import TablesError
from headgate_tables.hudi.log.block import Block, BlockKind, HeaderKey, encode_block, read_blocks
from headgate_tables.hudi.log.frames import FilePart, Frames, read_frames
from support.damage import flip
from support.golden import names
from support.golden_logs import golden_logs

LOGS = [(f"{name}/{path}", content) for name in names("h1*_mor_*") for path, content in golden_logs(f"spark/{name}")]


def framed(content: pa.Buffer) -> Frames | None:
    return read_frames(pa.BufferReader(content), content.size, "log")


def whole(content: pa.Buffer, found: Frames) -> list[Block]:
    """The blocks with their contents put back."""
    return [
        Block(block.kind, block.headers, content.slice(*found.contents[block.offset]), block.offset, block.size)
        for block in found.blocks
    ]


def test_golden_logs_have_the_blocks_that_they_have() -> None:
    assert len(LOGS) > 100
    for path, content in LOGS:
        found = framed(content)
        blocks = list(read_blocks(content, path))
        if any(block.kind is BlockKind.CORRUPT for block in blocks):
            assert found is None, path
        else:
            assert found is not None
            assert whole(content, found) == blocks, path


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_log_is_seen_as_it_is_seen_whole_or_left_to_who_sees_it_whole(seed: int) -> None:
    chosen = random.Random(seed)
    seen: dict[str, int] = {}
    for path, content in chosen.sample(LOGS, 40):
        for _ in range(30):
            hurt = pa.py_buffer(flip(content.to_pybytes(), chosen.randrange(content.size), chosen.randrange(8)))
            cut = hurt.slice(0, chosen.choice([hurt.size, hurt.size, chosen.randrange(hurt.size)]))
            outcome, wanted = told(lambda of=cut: framed(of)), told(lambda of=cut, at=path: list(read_blocks(of, at)))
            if isinstance(outcome, Frames):
                assert whole(cut, outcome) == wanted
            elif outcome is not None:
                assert outcome == wanted
            seen[type(outcome).__name__] = seen.get(type(outcome).__name__, 0) + 1
    assert {"Frames", "NoneType", "type"} <= seen.keys()


def told(work: object) -> object:
    """What it returns, or the class of what it raises."""
    try:
        return work()  # type: ignore[operator]
    except TablesError as error:
        return type(error)


@pytest.mark.parametrize("length", [0, 3_000, 65_500, 65_536, 300_000])
def test_headers_of_any_length_are_read(length: int) -> None:
    """Also those that are longer than what is read of a block at first, 64 KiB."""
    headers = {HeaderKey.INSTANT_TIME: "1", HeaderKey.SCHEMA: "x" * length}
    pieces = [*encode_block(BlockKind.DELETE, headers, [b"content"]), *encode_block(BlockKind.DELETE, {}, [])]
    content = pa.py_buffer(b"".join(bytes(memoryview(piece)) for piece in pieces))
    found = framed(content)
    assert found is not None
    assert whole(content, found) == list(read_blocks(content, "log"))


def test_a_part_of_a_file_reads_as_a_file_of_its_own() -> None:
    rows = pa.table({"a": range(5000)})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    inside = sink.getvalue()
    around = pa.BufferReader(b"before" + inside.to_pybytes() + b"behind")
    assert pq.read_table(pa.PythonFile(FilePart(around, 6, inside.size), mode="r")).equals(rows)
    part = FilePart(around, 6, inside.size)
    assert part.read() == inside.to_pybytes()
    assert part.read(3) == b""
    assert part.seek(-4, 2) == inside.size - 4
    assert (part.read(10), part.tell()) == (b"PAR1", inside.size)
