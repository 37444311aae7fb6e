"""Rows as Parquet: they read back, the layout is what was learnt, damage in a page is noticed."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables.hudi.log import parquet_rows
from headgate_tables.hudi.log.parquet_rows import SMALL_ROWS, ParquetLayout, encode, leaves, write_batch
from headgate_tables.hudi.log.reader import open_parquet
from headgate_tables.hudi.schema.canonical import table_schema
from headgate_tables.hudi.schema.meta_columns import FILE_NAME, META_COLUMNS, RECORD_KEY, attach_meta, sequence_numbers, with_meta
from support.events import events

INSTANT = "20261121001053580"
STRUCT = pa.struct([("a", pa.list_(pa.field("element", pa.int64()))), ("b", pa.struct([("c", pa.string())]))])
ALL_TYPES = pa.table(
    {
        "b": pa.array([True, None, False]),
        "i": pa.array([1, None, -(2**31)], pa.int32()),
        "l": pa.array([1, None, -(2**63)]),
        "f": pa.array([0.5, None, -1.0], pa.float32()),
        "d": pa.array([0.5, None, -1e308]),
        "n5": pa.array([Decimal("1.23"), None, Decimal("-999.99")], pa.decimal128(5, 2)),
        "n38": pa.array([Decimal("1.23"), None, Decimal("-9e27")], pa.decimal128(38, 10)),
        "s": pa.array(["", None, "ä" * 100]),
        "y": pa.array([b"", None, b"\xff\x00"]),
        "x": pa.array([b"abcd", None, b"efgh"], pa.binary(4)),
        "dt": pa.array([dt.date(2026, 1, 1), None, dt.date(1, 1, 1)]),
        "ms": pa.array([1, None, -1], pa.timestamp("ms", tz="UTC")),
        "us": pa.array([1, None, -1], pa.timestamp("us", tz="UTC")),
        "list": pa.array([[1, None], None, []], pa.list_(pa.field("element", pa.int32()))),
        "map": pa.array([[("a", 1)], None, [("b", None)]], pa.map_(pa.string(), pa.int64())),
        "struct": pa.array([{"a": [1], "b": {"c": "x"}}, None, {"a": None, "b": None}], STRUCT),
        "structs": pa.array([[{"a": 1}, None], None, []], pa.list_(pa.field("element", pa.struct([("a", pa.int32())])))),
    }
)


def stored(rows: pa.Table) -> pa.Table:
    """With meta columns as a writer attaches them."""
    keys = pa.array([str(n) for n in range(rows.num_rows)], pa.string())
    return attach_meta(rows, keys, sequence_numbers(INSTANT, rows.num_rows), instant=INSTANT, partition="p", file_name="fid-0")


def plain(rows: pa.Table) -> pa.Table:
    """Without dictionaries."""
    return rows.cast(with_meta(pa.schema([field for field in rows.schema if field.name not in META_COLUMNS])))


def column_chunk(content: pa.Buffer, name: str) -> pq.ColumnChunkMetaData:
    """Of the first row group."""
    group = pq.read_metadata(pa.BufferReader(content)).row_group(0)
    return next(group.column(i) for i in range(group.num_columns) if group.column(i).path_in_schema == name)


@pytest.mark.parametrize("repeated", [1, 400])
def test_all_types_read_back(repeated: int) -> None:
    assert table_schema(ALL_TYPES.schema) == ALL_TYPES.schema
    rows = stored(pa.concat_tables([ALL_TYPES] * repeated).combine_chunks())
    read = pq.read_table(pa.BufferReader(encode(rows, ParquetLayout(["l"]))))
    assert read.schema == plain(rows).schema
    assert read.equals(plain(rows))


def test_no_rows_are_a_file_with_columns() -> None:
    rows = stored(ALL_TYPES.slice(0, 0))
    assert pq.read_table(pa.BufferReader(encode(rows, ParquetLayout()))).equals(plain(rows))


@pytest.mark.parametrize("n", [1, SMALL_ROWS - 1, SMALL_ROWS, 512, 5000])
def test_files_of_any_size_read_back_before_and_after_learning(n: int) -> None:
    rows = stored(events(n))
    taught = ParquetLayout(["version"])
    encode(stored(events(5000)), taught)
    for layout in (ParquetLayout(["version"]), taught):
        assert pq.read_table(pa.BufferReader(encode(rows, layout))).equals(plain(rows))


def test_lists_and_maps_have_the_three_levels_that_java_expects() -> None:
    columns = pq.read_metadata(pa.BufferReader(encode(stored(ALL_TYPES), ParquetLayout()))).schema
    paths = {columns.column(i).path for i in range(len(columns))}
    assert {
        "list.list.element",
        "map.key_value.key",
        "map.key_value.value",
        "struct.a.list.element",
        "structs.list.element.a",
    } <= paths
    assert paths == {path for field in stored(ALL_TYPES).schema for path, _ in leaves(field)}


def test_constant_meta_columns_are_stored_once() -> None:
    content = encode(stored(events(5000)), ParquetLayout())
    assert column_chunk(content, FILE_NAME).total_compressed_size < 200
    assert column_chunk(content, RECORD_KEY).total_compressed_size > 2000


def test_only_key_and_ordering_have_statistics() -> None:
    for rows in (events(5), events(5000)):
        group = pq.read_metadata(pa.BufferReader(encode(stored(rows), ParquetLayout(["version", "event_id"])))).row_group(0)
        with_statistics = {group.column(i).path_in_schema for i in range(group.num_columns) if group.column(i).is_stats_set}
        assert with_statistics == {RECORD_KEY, "version", "event_id"}


def test_columns_are_laid_out_by_what_the_first_rows_hold() -> None:
    content = encode(stored(events(5000)), ParquetLayout())
    chunks = {name: column_chunk(content, name) for name in ("city", "user_id", "comment", "price")}
    assert "RLE_DICTIONARY" in chunks["city"].encodings
    assert "DELTA_BINARY_PACKED" in chunks["user_id"].encodings
    assert (chunks["comment"].compression, chunks["price"].compression) == ("ZSTD", "UNCOMPRESSED")
    assert not set(chunks["comment"].encodings) & {"RLE_DICTIONARY", "PLAIN_DICTIONARY"}


def test_a_column_of_few_wide_numbers_is_a_dictionary() -> None:
    ids = pa.table({"tenant": pa.array([2**40 * (n % 7) for n in range(5000)]), "small": pa.array([n % 7 for n in range(5000)])})
    content = encode(stored(ids), ParquetLayout())
    assert "RLE_DICTIONARY" in column_chunk(content, "tenant").encodings
    assert "DELTA_BINARY_PACKED" in column_chunk(content, "small").encodings


def test_a_layout_learnt_from_a_small_file_is_learnt_again_from_a_larger_one() -> None:
    layout = ParquetLayout()
    constant = pa.table({"c": pa.array(["same"] * 600)})
    assert "RLE_DICTIONARY" in column_chunk(encode(stored(constant), layout), "c").encodings
    varied = pa.table({"c": pa.array([f"value {n}" for n in range(2000)])})
    assert "RLE_DICTIONARY" not in column_chunk(encode(stored(varied), layout), "c").encodings


def texts(rows: int, width: int) -> pa.Table:
    """Of hexadecimal digits, which zstd makes half as large."""
    digits = np.random.default_rng(1).bytes(rows * width // 2).hex()
    return pa.table({"text": [digits[at * width : (at + 1) * width] for at in range(rows)]})


def test_a_megabyte_of_long_texts_is_compressed_however_few_they_are() -> None:
    rows = stored(texts(SMALL_ROWS + 50, 10_000))
    assert column_chunk(encode(rows, ParquetLayout()), "text").compression == "ZSTD"
    short = stored(texts(511, 1_000).slice(0, 500))
    assert column_chunk(encode(short, ParquetLayout()), "text").compression == "SNAPPY"
    few = stored(texts(SMALL_ROWS - 1, 20_000))
    assert column_chunk(encode(few, ParquetLayout()), "text").compression == "SNAPPY"


def test_a_layout_is_learnt_from_four_megabytes_and_from_no_more_of_them_ever_again(monkeypatch: pytest.MonkeyPatch) -> None:
    learnt: list[int] = []
    learn = parquet_rows._learn
    monkeypatch.setattr(parquet_rows, "_learn", lambda sample: learnt.append(sample.num_rows) or learn(sample))
    layout = ParquetLayout()
    for rows in (100, 200, 600, 1_200):
        encode(stored(texts(rows, 12_000)), layout)
    assert learnt[:2] == [100, 200]
    assert 300 < learnt[2] < 360
    assert len(learnt) == 3


def test_pages_of_rows_that_fit_into_one_are_not_cut_and_of_others_they_are() -> None:
    assert write_batch(texts(300, 10_000)) == write_batch(texts(300, 10)) == 16_384
    assert 400 < write_batch(texts(1_000, 10_000)) < 420


@pytest.mark.parametrize("pieces", [2, 30])
def test_pages_are_as_long_whatever_pieces_the_rows_are_in(pieces: int) -> None:
    whole = events(9_000).append_column("null", pa.nulls(9_000)).combine_chunks()
    whole = whole.append_column("text", texts(9_000, 1_000)["text"].combine_chunks())
    step = whole.num_rows // pieces
    cut = pa.concat_tables([whole.slice(at, step) for at in range(0, whole.num_rows, step)])
    assert abs(write_batch(cut) - write_batch(whole)) <= 0.02 * write_batch(whole) < 100


def test_a_changed_schema_is_learnt_anew() -> None:
    layout = ParquetLayout()
    encode(stored(events(5000)), layout)
    rows = stored(events(5000).append_column("new", pa.array(["x"] * 5000)))
    content = encode(rows, layout)
    assert pq.read_table(pa.BufferReader(content)).equals(plain(rows))
    assert "RLE_DICTIONARY" in column_chunk(content, "new").encodings


def test_schema_metadata_become_footer_keys_and_nothing_else_does() -> None:
    rows = stored(events(10))
    keys = pq.read_metadata(pa.BufferReader(encode(rows.replace_schema_metadata({"k": "v"}), ParquetLayout()))).metadata
    assert keys == {b"k": b"v"}
    assert not pq.read_metadata(pa.BufferReader(encode(rows, ParquetLayout()))).metadata


def test_the_same_rows_give_the_same_bytes() -> None:
    # Rule FI3: a retried flush must find its own file under the name.
    layout = ParquetLayout(["version"])
    rows = stored(events(3000))
    encode(rows, layout)
    assert encode(rows, layout).equals(encode(rows, layout))


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 700])
def test_a_flipped_bit_in_a_page_is_noticed(n: int) -> None:
    rows = stored(events(n))
    content = encode(rows, ParquetLayout(["version"])).to_pybytes()
    group = pq.read_metadata(pa.BufferReader(content)).row_group(0)
    unnoticed = []
    for column in range(group.num_columns):
        chunk = group.column(column)
        begin = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
        for position in range(begin, begin + chunk.total_compressed_size, 11):
            damaged = bytearray(content)
            damaged[position] ^= 1 << (position % 8)
            try:
                read = open_parquet(pa.BufferReader(bytes(damaged))).read(use_threads=False)
            except (pa.ArrowException, OSError):
                continue
            if not read.equals(plain(rows)):
                unnoticed.append((chunk.path_in_schema, position - begin))
    assert unnoticed == []
