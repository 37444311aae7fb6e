"""Delete records: bytes, wrappers, and what is made of other writers' and damaged blocks."""

import contextlib
import datetime as dt
import io
import struct
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate_tables.errors import CorruptFileError, NullOrderingError, TablesError, UnsupportedTableError, UnsupportedTypeError
from headgate_tables.hudi.log import deletes
from headgate_tables.hudi.log.avro_binary import read_varint, varint, varints
from headgate_tables.hudi.log.avro_walk import Walk
from headgate_tables.hudi.log.block import BlockKind, read_blocks
from headgate_tables.hudi.log.delete_list import DELETE_LIST, decode_list
from headgate_tables.hudi.log.deletes import DeleteRows, check_ordering_type, decode, encode
from support.golden_logs import golden_logs
from support.strategies import effort

MODEL = "org.apache.hudi.avro.model"
US = pa.timestamp("us", tz="UTC")


def payload(records: list[tuple[str | None, str | None, Any]]) -> pa.Buffer:
    """A block's content as Hudi's own Avro writer makes it; ordering values as (wrapper, value) or None."""
    items = []
    for key, partition, ordering in records:
        wrapped = None if ordering is None else (f"{MODEL}.{ordering[0]}", {"value": ordering[1]})
        items.append({"recordKey": key, "partitionPath": partition, "orderingVal": wrapped})
    out = io.BytesIO()
    fastavro.schemaless_writer(out, DELETE_LIST, {"deleteRecordList": items})
    return pa.py_buffer(struct.pack(">ii", 3, len(out.getvalue())) + out.getvalue())


def as_lists(rows: DeleteRows) -> tuple[list[Any], list[Any], list[Any] | None]:
    return rows.keys.to_pylist(), rows.partitions.to_pylist(), None if rows.ordering is None else rows.ordering.to_pylist()


def decode_both(content: pa.Buffer) -> DeleteRows:
    """Read record by record and as columns, which must agree; the columnar way gives up only on what it is not meant for."""
    rows = DeleteRows(*decode_list(content.slice(8), "f"))
    columns = deletes._decode_columns(content.slice(8))
    assert columns is not None
    assert as_lists(DeleteRows(*columns)) == as_lists(rows) == as_lists(decode(content, "f"))
    assert None in (columns[2], rows.ordering) or columns[2].type == rows.ordering.type
    return rows


def test_one_delete_without_ordering_has_the_bytes_of_the_specification() -> None:
    record = bytes.fromhex("02 02 02 61 02 02 70 04 00 00")
    assert encode(pa.array(["a"]), "p", None).to_pybytes() == struct.pack(">ii", 3, len(record)) + record


@pytest.mark.parametrize(
    ("ordering", "record"),
    [
        (pa.array([8], pa.int32()), "04 10"),
        (pa.array([8]), "06 10"),
        (pa.array([8.0], pa.float32()), "08 00 00 00 41"),
        (pa.array([8.0]), "0a 00 00 00 00 00 00 20 40"),
        (pa.array(["8"]), "0e 02 38"),
        (pa.array([True]), "02 01"),
        (pa.array([b"8"]), "0c 02 38"),
        (pa.array([Decimal("8.5")], pa.decimal128(18, 4)), "12 0e 1e 32 b4 78 97 40 00"),
        (pa.array([Decimal("8.5")], pa.decimal128(38, 10)), "12 0e 1e 32 b4 78 97 40 00"),
        (pa.array([1_700_000_000_123_464], US), "06 90 89 81 82 83 89 85 06"),
        (pa.array([19_724], pa.date32()), "04 98 b4 02"),
    ],
)
def test_ordering_values_are_wrapped_as_spark_wraps_them(ordering: pa.Array, record: str) -> None:
    # The bytes are those of delete blocks that Hudi 1.2.0 on Spark wrote for such columns (dates: that it reads).
    items = bytes.fromhex(f"02 02 04 6b 32 02 00 {record} 00")
    assert encode(pa.array(["k2"]), "", ordering).to_pybytes() == struct.pack(">ii", 3, len(items)) + items


@pytest.mark.parametrize(
    ("ordering", "read_as"),
    [
        (pa.array([1, -2, 2**31 - 1], pa.int32()), pa.int32()),
        (pa.array([0, -(2**63), 2**63 - 1]), pa.int64()),
        (pa.array([0.5, -1.0, 3e38], pa.float32()), pa.float32()),
        (pa.array([0.5, -0.0, 1e308]), pa.float64()),
        (pa.array(["", "ä", "x" * 300]), pa.string()),
        (pa.array([b"", b"\xff", b"x" * 300]), pa.binary()),
        (pa.array([True, False, True]), pa.bool_()),
        (pa.array([Decimal("-99999.999"), Decimal("0.001"), Decimal("12")], pa.decimal128(8, 3)), pa.decimal128(30, 15)),
        (pa.array([1, 2, 3], pa.date32()), pa.int32()),
        (pa.array([1, 2, 3], pa.timestamp("ms", tz="UTC")), pa.int64()),
        (pa.array([1, -2, 3], US), pa.int64()),
        (None, None),
    ],
)
def test_deletes_read_back(ordering: pa.Array | None, read_as: pa.DataType | None) -> None:
    keys = pa.array(["a", "b" * 100, "ключ"])
    read = decode_both(encode(keys, "dt=2026/ä", ordering))
    assert read.keys == keys
    assert read.partitions.to_pylist() == ["dt=2026/ä"] * 3
    if ordering is None or read_as is None:
        assert read.ordering is None
    else:
        assert read.ordering is not None
        assert read.ordering.type == read_as
        plain = (
            ordering.cast(read_as)
            if pa.types.is_decimal(read_as)
            else ordering.view(read_as)
            if pa.types.is_temporal(ordering.type)
            else ordering
        )
        assert read.ordering == plain


def test_slices_are_encoded_like_copies() -> None:
    keys, values = pa.array(["x", "a", "b", "y"]), pa.array([Decimal(n) for n in (9, 1, 2, 9)], pa.decimal128(10, 2))
    sliced = encode(keys.slice(1, 2), "p", values.slice(1, 2))
    assert sliced.equals(encode(pa.array(["a", "b"]), "p", pa.array([Decimal(1), Decimal(2)], pa.decimal128(10, 2))))


def test_a_block_without_deletes_holds_an_empty_list() -> None:
    content = encode(pa.array([], pa.string()), "p", pa.array([], pa.int64()))
    assert content.to_pybytes() == struct.pack(">ii", 3, 1) + b"\x00"
    assert as_lists(decode(content, "f")) == ([], [], None)


def test_a_null_ordering_value_is_refused() -> None:
    with pytest.raises(NullOrderingError, match="no ordering value"):
        encode(pa.array(["a", "b"]), "p", pa.array([1, None]))


@effort(100)
@given(
    st.lists(st.tuples(st.text(max_size=200), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=300), st.text(max_size=200)
)
def test_what_is_written_is_what_avro_would_write(rows: list[tuple[str, int]], partition: str) -> None:
    keys, values = pa.array([key for key, _ in rows], pa.string()), pa.array([value for _, value in rows], pa.int64())
    content = encode(keys, partition, values)
    assert content.equals(payload([(key, partition, ("LongWrapper", value)) for key, value in rows]))
    assert as_lists(decode_both(content)) == ([key for key, _ in rows], [partition] * len(rows), values.to_pylist())


def _is_smallest(number: int) -> bool:
    """Of those that fit into some number of bytes, as two's complement."""
    return number < 0 and number == -(1 << (8 * ((-number - 1).bit_length() // 8) + 7))


@pytest.mark.parametrize("length", [1, 2, 3])
def test_the_smallest_number_of_each_length_takes_that_length(length: int) -> None:
    smallest, larger = -(1 << (8 * length - 1)), 1 - (1 << (8 * length - 1))
    sizes = [
        encode(pa.array(["k"]), "", pa.array([Decimal(number).scaleb(-15)], pa.decimal128(30, 15))).size
        for number in (smallest, larger, smallest - 1)
    ]
    assert sizes[0] == sizes[1] == sizes[2] - 1


@effort(100)
@given(st.lists(st.decimals(-(10**14), 10**14, places=15, allow_nan=False), min_size=1))
def test_decimals_are_written_in_the_fewest_bytes(values: list[Decimal]) -> None:
    # fastavro spends a byte too much on -128, -32768 and so on (test_the_smallest_number_of_each_length_takes_that_length).
    fits = [value for value in values if len(value.as_tuple().digits) <= 30 and not _is_smallest(int(value.scaleb(15)))]
    content = encode(pa.array([str(n) for n in range(len(fits))], pa.string()), "", pa.array(fits, pa.decimal128(30, 15)))
    assert content.equals(payload([(str(n), "", ("DecimalWrapper", value)) for n, value in enumerate(fits)]))


@effort(100)
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)))
def test_numbers_of_any_size_take_the_bytes_that_avro_gives_them(numbers: list[int]) -> None:
    encoded = varints(np.array(numbers, dtype=np.int64)).to_pylist()
    assert encoded == [varint(number) for number in numbers]
    raw = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    sizes = np.array([len(each) for each in encoded], dtype=np.int64)
    read, ends = Walk(raw, 0).numbers(np.cumsum(sizes) - sizes) if numbers else ([], np.cumsum(sizes))
    assert list(read) == numbers
    assert np.array_equal(ends, np.cumsum(sizes))
    assert [read_varint(memoryview(raw), 0) for raw in encoded] == [
        (number, len(raw)) for number, raw in zip(numbers, encoded, strict=True)
    ]


# --- blocks of other writers ---


@pytest.mark.parametrize(
    "table",
    [
        "spark/h120_v8_mor_bucket_np",
        "spark/h120_v8_mor_event_time_late",
        "spark/h120_v9_mor_parquetlog",
        "flink/mor_bucket_upsert_delete_v9",
    ],
)
def test_both_ways_read_real_delete_blocks_alike(table: str) -> None:
    found = [
        block.content
        for path, content in golden_logs(table)
        for block in read_blocks(content, path)
        if block.kind is BlockKind.DELETE
    ]
    assert found
    for content in found:
        assert len(decode_both(content).keys) > 0


@pytest.mark.parametrize(
    ("wrapper", "value", "expected"),
    [
        ("DateWrapper", 3, pa.array([3], pa.date32())),
        ("TimeMicrosWrapper", 3, pa.array([3], pa.time64("us"))),
        ("TimestampMicrosWrapper", 3, pa.array([3], US)),
    ],
)
def test_wrappers_that_we_do_not_write_are_read(wrapper: str, value: int, expected: pa.Array) -> None:
    assert decode_both(payload([("a", "p", (wrapper, value))])).ordering == expected


@pytest.mark.parametrize("unset", [None, ("IntWrapper", 0)])
def test_a_delete_without_ordering_value_differs_from_one_with(unset: Any) -> None:
    assert decode(payload([("a", "p", unset), ("b", "p", unset)]), "f").ordering is None
    mixed = decode(payload([("a", "p", unset), ("b", "p", ("LongWrapper", 0)), ("c", "p", ("LongWrapper", 7))]), "f")
    assert mixed.ordering == pa.array([None, 0, 7], pa.int64())
    ints = decode(payload([("a", "p", unset), ("b", "p", ("IntWrapper", 7))]), "f")
    assert ints.ordering == pa.array([None, 7], pa.int32())


def test_a_missing_partition_path_is_null() -> None:
    assert as_lists(decode(payload([("a", None, None)]), "f")) == (["a"], [None], None)


def test_a_list_in_several_avro_blocks_is_read() -> None:
    records = [("a", "p", ("LongWrapper", 1)), ("b", "p", ("LongWrapper", 2))]
    one, two = (payload([record]).to_pybytes()[9:-1] for record in records)
    sized = b"".join(varint(-1) + varint(len(part)) + part for part in (one, two)) + b"\x00"
    counted = b"".join(varint(1) + part for part in (one, two)) + b"\x00"
    for joined in (sized, counted):
        content = pa.py_buffer(struct.pack(">ii", 3, len(joined)) + joined)
        assert as_lists(decode(content, "f")) == (["a", "b"], ["p", "p"], [1, 2])


def test_values_of_several_types_are_refused() -> None:
    with pytest.raises(UnsupportedTableError, match="f: deletes ordered by LongWrapper, StringWrapper"):
        decode(payload([("a", "p", ("LongWrapper", 1)), ("b", "p", ("StringWrapper", "x"))]), "f")


@pytest.mark.parametrize("version", [1, 2, 4])
def test_other_content_versions_are_refused(version: int) -> None:
    with pytest.raises(UnsupportedTableError, match=f"f: delete block of content version {version}"):
        decode(pa.py_buffer(struct.pack(">ii", version, 0)), "f")


def test_a_delete_without_key_is_damage() -> None:
    with pytest.raises(CorruptFileError, match="one has no key"):
        decode(payload([(None, "p", None)]), "f")


def test_a_block_cut_anywhere_is_an_error() -> None:
    content = encode(pa.array(["a", "b"]), "p", pa.array([1, 2]))
    for cut in range(content.size):
        with pytest.raises(CorruptFileError, match="f: a delete block is damaged"):
            decode(content.slice(0, cut), "f")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_bytes_are_a_typed_error_or_what_avro_makes_of_them(
    capfd: pytest.CaptureFixture[str], data: st.DataObject
) -> None:
    long = "x" * data.draw(st.sampled_from([1, 600]))
    content = bytearray(encode(pa.array(["key1", long, "key3"]), "part", pa.array([1, 200, -(2**40)])).to_pybytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(8, len(content) - 1))] = data.draw(st.integers(0, 255))
    buffer = pa.py_buffer(bytes(content))
    columns = deletes._decode_columns(buffer.slice(8))
    try:
        expected = as_lists(DeleteRows(*decode_list(buffer.slice(8), "f")))
    except TablesError as error:
        with pytest.raises(type(error), match="f: "):
            decode(buffer, "f")
        assert columns is None
    else:
        assert as_lists(decode(buffer, "f")) == expected
        assert columns is None or as_lists(DeleteRows(*columns)) == expected
    assert capfd.readouterr().err == "", "the decoder panicked"


@pytest.mark.parametrize("byte", [0x01, 0x7F, 0x80, 0xFF])
def test_no_byte_of_a_large_block_makes_a_library_print(capfd: pytest.CaptureFixture[str], byte: int) -> None:
    content = encode(pa.array(["x" * 1100, "key2"]), "part", pa.array([200, -(2**40)])).to_pybytes()
    for at in [*range(8, 20), *range(len(content) - 40, len(content))]:
        with contextlib.suppress(CorruptFileError):
            decode(pa.py_buffer(content[:at] + bytes([byte]) + content[at + 1 :]), "f")
    assert capfd.readouterr().err == ""


# --- ordering columns ---


@pytest.mark.parametrize(
    "kind",
    [
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.date32(),
        US,
        pa.decimal128(30, 15),
        pa.decimal128(18, 4),
    ],
)
def test_a_column_whose_deletes_readers_obey_may_order(kind: pa.DataType) -> None:
    check_ordering_type(kind, "ts")
    if pa.types.is_decimal(kind):
        one = pa.array([Decimal(1)], kind)
    else:
        one = pa.array([1], pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)
    assert decode(encode(pa.array(["a"]), "", one), "f").ordering is not None


@pytest.mark.parametrize(
    "kind",
    [
        pa.bool_(),
        pa.string(),
        pa.binary(),
        pa.binary(4),
        pa.list_(pa.int32()),
        pa.timestamp("ms", "UTC"),
        pa.decimal128(30, 16),
        pa.decimal128(31, 15),
    ],
)
def test_other_columns_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedTypeError, match="Ordering column 'ts' is"):
        check_ordering_type(kind, "ts")


def test_an_ordering_value_of_no_wrapper_is_refused() -> None:
    with pytest.raises(UnsupportedTypeError, match="cannot be ordered by list"):
        deletes.encode(pa.array(["a"]), "", pa.array([[1]]))


def test_dates_and_times_are_read_as_the_numbers_that_were_written() -> None:
    read = decode(encode(pa.array(["a"]), "", pa.array([dt.date(2026, 1, 1)])), "f").ordering
    assert read is not None
    assert read.view(pa.date32()).to_pylist() == [dt.date(2026, 1, 1)]
