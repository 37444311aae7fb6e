"""Whole log files: what we write, what Hudi wrote, and damaged ones."""

import contextlib
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables.errors import CorruptFileError, TablesError, UnsupportedTableError
from headgate_tables.hudi.log.block import BlockKind, HeaderKey, encode_block, read_blocks
from headgate_tables.hudi.log.deletes import DeleteRows
from headgate_tables.hudi.log.parquet_rows import ParquetLayout
from headgate_tables.hudi.log.reader import DeleteBlock, RowsBlock, read_log_file
from headgate_tables.hudi.log.writer import encode_log_file
from headgate_tables.hudi.schema.arrow_to_avro import avro_schema
from headgate_tables.hudi.schema.meta_columns import COMMIT_TIME, RECORD_KEY, attach_meta, sequence_numbers, with_meta
from headgate_tables.hudi.slice_reader import drop_compacted
from support.events import EVENTS_SCHEMA, events
from support.golden_logs import golden_logs

T1, T2 = "20261121001053580", "20261121001053581"
SCHEMA = avro_schema(EVENTS_SCHEMA, "events", meta_columns=True)
Found = list[RowsBlock | DeleteBlock]


def committed(_: str) -> bool:
    """Every instant is."""
    return True


def log_bytes(instant: str = T1, rows: int = 5, deletes: int = 2) -> bytes:
    """A log file of ``instant``; 0 leaves a block out."""
    data = events(rows)
    stored = (
        attach_meta(
            data, data["event_id"], sequence_numbers(instant, data.num_rows), instant=instant, partition="", file_name="fid-0"
        )
        if rows
        else None
    )
    gone = events(deletes, start=100)
    deleted = (gone["event_id"].combine_chunks(), "", gone["version"].combine_chunks()) if deletes else None
    blocks = [block for block in (stored, deleted) if block is not None]
    return join(encode_log_file(instant, SCHEMA, blocks, ParquetLayout(["version"])))


def join(pieces: object) -> bytes:
    return b"".join(bytes(memoryview(piece)) for piece in pieces)  # type: ignore[attr-defined]


def command(instant: str, target: str, kind: str = "0") -> bytes:
    headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.TARGET_INSTANT_TIME: target, HeaderKey.COMMAND_BLOCK_TYPE: kind}
    return join(encode_block(BlockKind.COMMAND, headers, []))


def read(content: bytes, *, strict: bool = False) -> Found:
    return read_log_file(pa.py_buffer(content), "f.log", committed, strict=strict)


def values(found: Found) -> list[tuple[str, pa.Table | DeleteRows]]:
    """Everything that the blocks hold."""
    return [(block.instant, block.read() if isinstance(block, RowsBlock) else block.rows) for block in found]


# --- ours ---


def test_rows_and_deletes_read_back_in_order() -> None:
    rows, deletes = read(log_bytes(), strict=True)
    assert isinstance(rows, RowsBlock)
    assert isinstance(deletes, DeleteBlock)
    assert rows.read().select(EVENTS_SCHEMA.names).equals(events(5))
    assert rows.read([COMMIT_TIME, RECORD_KEY]).to_pylist() == [
        {COMMIT_TIME: T1, RECORD_KEY: key} for key in events(5)["event_id"].to_pylist()
    ]
    assert (rows.instant, rows.partial, rows.compacted, rows.path, rows.offset, rows.num_rows) == (T1, False, (), "f.log", 0, 5)
    assert rows.column_names == with_meta(EVENTS_SCHEMA).names
    assert deletes.rows.keys.to_pylist() == events(2, start=100)["event_id"].to_pylist()
    assert deletes.rows.ordering == pa.array([1, 1])
    assert deletes.offset == rows.block.size


def test_the_headers_are_those_that_hudi_writes() -> None:
    blocks = list(read_blocks(pa.py_buffer(log_bytes()), "f.log"))
    assert [block.kind for block in blocks] == [BlockKind.PARQUET_DATA, BlockKind.DELETE]
    assert [dict(block.headers) for block in blocks] == [{HeaderKey.INSTANT_TIME: T1, HeaderKey.SCHEMA: SCHEMA}] * 2


def test_columns_that_a_block_lacks_are_left_out() -> None:
    block = read(log_bytes())[0]
    assert isinstance(block, RowsBlock)
    assert block.read(["unknown", "version", "city"]).column_names == ["city", "version"]
    assert block.read([]).num_rows == 5


def test_a_parquet_block_offers_its_row_groups() -> None:
    block = read(log_bytes())[0]
    assert isinstance(block, RowsBlock)
    assert block.parquet is not None
    assert block.parquet.metadata.row_group(0).num_rows == 5


def test_blocks_of_uncommitted_instants_are_not_there() -> None:
    found = read_log_file(pa.py_buffer(log_bytes(T1) + log_bytes(T2)), "f.log", lambda instant: instant == T2)
    assert [block.instant for block in found] == [T2, T2]


# --- rollback blocks (format version 6) ---


def test_a_rollback_takes_back_the_blocks_of_its_instant_just_before_it() -> None:
    assert [block.instant for block in read(log_bytes(T1) + log_bytes(T2) + command("9", T2))] == [T1, T1]


def test_a_rollback_of_another_instant_changes_nothing() -> None:
    assert [block.instant for block in read(log_bytes(T2) + log_bytes(T1) + command("9", T2))] == [T2, T2, T1, T1]


def test_a_rollback_reaches_past_a_torn_block() -> None:
    torn = log_bytes(T2, rows=0)[:-5]
    assert read(log_bytes(T2, rows=0) + torn + command("9", T2)) == []


def test_another_command_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match=r"f\.log at byte 0: log command '1'"):
        read(command("9", T1, kind="1"))


def test_a_rollback_in_a_real_log_is_applied() -> None:
    logs = golden_logs("spark/h120_v9_mor_rollback")
    assert logs
    for path, content in logs:
        read_log_file(content, path, committed, strict=True)


# --- other writers' ---


@pytest.mark.parametrize(
    "table",
    [
        "spark/h120_v8_mor_parquetlog",
        "spark/h120_v8_mor_types_avro",
        "spark/h120_v9_mor_multi_log_blocks",
        "flink/mor_parquet_log_v9",
    ],
)
def test_every_block_of_real_logs_is_read(table: str) -> None:
    logs = [(path, content) for path, content in golden_logs(table) if ".hoodie/" not in path]
    assert logs
    for path, content in logs:
        for block in read_log_file(content, path, committed, strict=True):
            if isinstance(block, RowsBlock):
                rows = block.read()
                assert rows.num_rows == block.num_rows > 0
                assert rows.column_names == block.column_names
                assert rows[RECORD_KEY].null_count == 0
                assert set(rows[COMMIT_TIME].to_pylist()) == {block.instant}
            else:
                assert len(block.rows.keys) > 0


def test_a_log_compaction_block_names_the_instants_it_replaces() -> None:
    found = [
        block
        for path, content in golden_logs("spark/h120_v9_mor_logcompaction")
        if not path.startswith(".hoodie")
        for block in read_log_file(content, path, committed)
    ]
    compacted = [block for block in found if block.compacted]
    assert compacted
    for block in compacted:
        assert set(block.compacted) <= {other.instant for other in found if not other.compacted}


def test_partial_blocks_say_so() -> None:
    found = [
        block
        for path, content in golden_logs("spark/h120_v9_mor_partial_update")
        for block in read_log_file(content, path, committed)
    ]
    assert {block.partial for block in found if isinstance(block, RowsBlock)} >= {True}


def test_blocks_of_a_metadata_table_are_refused() -> None:
    path, content = [item for item in golden_logs("spark/h120_v8_mor_bloom_np") if item[0].startswith(".hoodie/metadata/files/")][
        -1
    ]
    with pytest.raises(UnsupportedTableError, match="a log block of kind HFILE_DATA"):
        read_log_file(content, path, committed)


def test_a_block_without_instant_is_damage() -> None:
    with pytest.raises(CorruptFileError, match=r"f\.log at byte 0: a log block without INSTANT_TIME"):
        read(join(encode_block(BlockKind.DELETE, {}, [])))


# --- damage ---


@pytest.mark.slow
def test_a_log_cut_anywhere_gives_the_blocks_before_the_cut_or_an_error_when_strict() -> None:
    content = log_bytes(T1) + log_bytes(T2, rows=3)
    whole = read(content)
    expected = values(whole)
    ends = [block.offset + block.block.size for block in whole]
    for cut in range(len(content)):
        complete = sum(end <= cut for end in ends)
        found = read(content[:cut])
        assert [block.offset for block in found] == [block.offset for block in whole[:complete]]
        if cut % 50 == 0 or cut in ends:
            assert values(found) == expected[:complete]
        if cut in ends:
            assert len(read(content[:cut], strict=True)) == complete
        else:
            with pytest.raises(CorruptFileError, match=r"f\.log is damaged from byte"):
                read(content[:cut], strict=True)


@pytest.mark.slow
def test_a_flipped_bit_anywhere_is_a_typed_error_or_leaves_what_the_block_says_of_itself() -> None:
    content = log_bytes(rows=20, deletes=3)
    whole = read(content)
    expected = values(whole)
    body = whole[0].block.content
    first_page = content.index(b"PAR1")
    footer = pq.read_metadata(pa.BufferReader(body)).serialized_size + 8
    pages = range(first_page + 4, first_page + body.size - footer)
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << (position % 8)
        with contextlib.suppress(TablesError):
            found = values(read(bytes(damaged), strict=True))
            assert position not in pages or found == expected


@dataclass(frozen=True)
class Dated:
    """Of a block, what its order goes by."""

    instant: str
    compacted: tuple[str, ...] = ()


def test_a_block_of_a_log_compaction_stands_where_the_newest_of_those_stood_that_it_replaces() -> None:
    """Its own instant is younger than logs whose rows beat its rows."""
    one, two, three, four = map(Dated, "1234")
    merged = Dated("5", ("1", "2"))
    assert drop_compacted([one, two, three, merged, four]) == [merged, three, four]
    assert drop_compacted([one, two]) == [one, two]


def test_a_log_compaction_of_a_log_compaction_stands_where_the_newest_log_stood_whose_rows_it_has() -> None:
    one, two, three, four = map(Dated, "1234")
    first, second = Dated("5", ("1", "2")), Dated("7", ("3", "5"))
    assert drop_compacted([one, two, three, four, first, Dated("6"), second]) == [second, four, Dated("6")]
    assert drop_compacted([three, four, second]) == [second, four], "what it replaced before is gone"
    alone = Dated("6", ("5",))
    assert drop_compacted([one, two, four, first, alone]) == [alone, four]


def test_blocks_that_say_they_replace_themselves_or_younger_ones_replace_nothing() -> None:
    circle = [Dated("1", ("1", "2")), Dated("2", ("3",)), Dated("3")]
    assert drop_compacted(circle) == circle
