"""Bad arguments: each call has a typed error that names what is wrong and what to do, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headgate_tables import hudi
from headgate_tables.errors import (
    NullKeyError,
    NullOrderingError,
    OptionError,
    OtherDefinitionError,
    PartitionValueError,
    SchemaError,
    TableExistsError,
    TablesError,
    UnsupportedTypeError,
)
from headgate_tables.hudi import batches
from support.refusals import assert_refused, refused
from support.tables import SCHEMA, create, keys, notes, rows

TEXT = pa.string()
CAST, GIVE_A_KEY, GIVE_AN_ORDER = "Cast the column", "Give these rows a key", "Give every row"
CHANGE, GIVE_A_VALUE, SEND_THESE = "Change the value", "Give these rows a value", "Send exactly these: id, part, ts"


def column(name: str, *values: Any, kind: pa.DataType = TEXT) -> tuple[str, pa.Array[Any]]:
    """Values of a column for the second of two rows; the first keeps its own."""
    return name, pa.array(values, kind)


BAD_VALUES = [
    pytest.param(column("ts", "b", "5"), SchemaError, r"'ts' is string and cannot become int64", CAST, id="wrong type"),
    pytest.param(column("ts", 1.5, 2.5, kind=pa.float64()), SchemaError, r"'ts' is double.*int64", CAST, id="loses digits"),
    pytest.param(
        column("id", "a", None), NullKeyError, r"'id' is null or empty in 1 of 2 rows, first in row 1", GIVE_A_KEY, id="null key"
    ),
    pytest.param(
        column("id", "a", ""), NullKeyError, r"'id' is null or empty in 1 of 2 rows, first in row 1", GIVE_A_KEY, id="empty key"
    ),
    pytest.param(
        column("ts", 1, None, kind=pa.int64()), NullOrderingError, r"'ts' .* first in row 1", GIVE_AN_ORDER, id="null ordering"
    ),
    pytest.param(column("part", "p", ".."), PartitionValueError, r"'\.\.' of partition column 'part'", CHANGE, id="dots"),
    pytest.param(column("part", "p", "."), PartitionValueError, r"'\.' of partition column 'part'", CHANGE, id="dot"),
    pytest.param(column("part", "p", "a\0b"), PartitionValueError, r"column 'part' holds NUL", CHANGE, id="NUL"),
    pytest.param(column("part", "p", ""), PartitionValueError, r"'' of partition column 'part'", CHANGE, id="empty partition"),
    pytest.param(column("part", "p", None), PartitionValueError, r"'part' is null in 1 of 2", GIVE_A_VALUE, id="null partition"),
    pytest.param(column("part", "p", "x" * 256), PartitionValueError, r"'part' .*256 bytes, and 255", CHANGE, id="too long"),
    pytest.param(
        column("part", "p", "é" * 128), PartitionValueError, r"'part' .*256 bytes, and 255", CHANGE, id="too many bytes"
    ),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    """One for all tests, which leave it as it was but for the good row that each adds."""
    made = create(tmp_path_factory.mktemp("bad_input"))
    made.upsert(rows(("a", 1, "x"), ("b", 1, "x")))
    return made


@pytest.mark.parametrize(("bad", "error", "names", "fix"), BAD_VALUES)
@pytest.mark.parametrize("call", ["upsert", "delete"])
def test_a_bad_value_refuses_the_whole_call(
    table: hudi.Table, call: str, bad: tuple[str, pa.Array[Any]], error: type[TablesError], names: str, fix: str
) -> None:
    good = rows(("a", 2, "y"), ("c", 1, "y")) if call == "upsert" else keys(("a", 2), ("b", 2))
    data = good.set_column(good.schema.get_field_index(bad[0]), *bad)
    assert_refused(table, lambda: getattr(table, call)(data), error, names, fix)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        pytest.param(lambda data: data.drop_columns(["ts"]), r"missing: ts", id="missing"),
        pytest.param(lambda data: data.drop_columns(["ts", "part"]), r"missing: part, ts", id="two missing"),
        pytest.param(lambda data: data.append_column("ts", pa.array([5])), r"more than once: ts", id="twice"),
        pytest.param(lambda data: data.rename_columns({"ts": "TS"}), r"missing: ts", id="other case"),
    ],
)
@pytest.mark.parametrize("call", ["upsert", "delete"])
def test_columns_that_are_not_the_tables_are_named(table: hudi.Table, call: str, change: Any, names: str) -> None:
    data = change(rows(("a", 2, "y")) if call == "upsert" else keys(("a", 2)))
    assert_refused(table, lambda: getattr(table, call)(data), SchemaError, names, SEND_THESE)


def test_an_upsert_names_unknown_columns_and_a_delete_ignores_them(table: hudi.Table) -> None:
    extra = pa.array([1])
    row = rows(("a", 2, "y")).append_column("extra", extra)
    assert_refused(table, lambda: table.upsert(row), SchemaError, "unknown: extra", SEND_THESE)
    table.upsert(rows(("short-lived", 1, "x")))
    assert table.delete(keys(("short-lived", 1)).append_column("extra", extra)).deleted == 1
    assert "short-lived" not in notes(table)


def test_a_missing_nullable_column_is_refused_because_it_would_erase_values(table: hudi.Table) -> None:
    without = rows(("a", 2, "y")).drop_columns(["note"])
    assert_refused(table, lambda: table.upsert(without), SchemaError, "missing: note", "id, part, ts, note")


def test_null_in_a_column_that_must_not_hold_it_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", TEXT), pa.field("count", pa.int32(), nullable=False)])
    table = hudi.create_table(str(tmp_path / "table"), schema, record_key="id")
    with refused(SchemaError, "'count' holds null", "Fill in the values"):
        table.upsert(pa.table({"id": ["a"], "count": pa.array([None], pa.int32())}))
    assert table.commits() == []


@pytest.mark.parametrize("data", [None, 5, "rows", [1], {"id": ["a"]}, [{"id": "a"}], pa.array([1]), SCHEMA], ids=type)
@pytest.mark.parametrize("call", ["upsert", "delete"])
def test_data_that_is_not_a_stream_is_refused(table: hudi.Table, call: str, data: Any) -> None:
    what = rf"^{type(data).__name__} cannot be read"
    assert_refused(table, lambda: getattr(table, call)(data), OptionError, what, "Pass a pyarrow Table")


def test_a_single_column_is_refused_as_a_table(table: hudi.Table) -> None:
    assert_refused(table, lambda: table.upsert(pa.chunked_array([["a"]])), OptionError, "ChunkedArray", "Pass a table")


def test_a_frame_whose_columns_arrow_cannot_hold_is_refused(table: hudi.Table) -> None:
    twice = pd.DataFrame([["a", "p"]], columns=["id", "id"])
    assert_refused(table, lambda: table.upsert(twice), OptionError, "Duplicate column names", "a name of its own")
    mixed = pd.DataFrame({"id": ["a", 1]})
    assert_refused(table, lambda: table.upsert(mixed), OptionError, "column id", "values of one type")


def test_a_stream_that_turns_bad_leaves_nothing_of_its_first_half(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "FLUSH_BYTES", 1)
    halves = [rows(("c", 1, "first half")), rows(("d", 1, "y")).set_column(0, *column("id", None))]
    stream = pa.RecordBatchReader.from_batches(SCHEMA, [half.to_batches()[0] for half in halves])
    assert_refused(table, lambda: table.upsert(stream), NullKeyError, "'id'", GIVE_A_KEY)
    assert "c" not in notes(table)


def test_a_producer_that_fails_keeps_its_error_and_commits_nothing(table: hudi.Table) -> None:
    def produce() -> Iterator[pa.RecordBatch]:
        yield rows(("c", 1, "y")).to_batches()[0]
        raise ValueError("the producer's own")

    commits = table.commits()
    with pytest.raises(ValueError, match="the producer's own"):
        table.upsert(pa.RecordBatchReader.from_batches(SCHEMA, produce()))
    assert "c" not in notes(table)
    assert table.commits() == commits


def test_an_empty_stream_of_other_columns_is_refused_too(table: hudi.Table) -> None:
    empty = pa.RecordBatchReader.from_batches(pa.schema([("id", TEXT)]), [])
    assert_refused(table, lambda: table.upsert(empty), SchemaError, "missing: part, ts, note", SEND_THESE)


# --- create_table ---

TYPES_REFUSED = {
    "record_key": [pa.float64(), pa.timestamp("us"), pa.binary(), pa.list_(TEXT), pa.struct([("a", TEXT)]), pa.map_(TEXT, TEXT)],
    "partition_by": [
        pa.float32(),
        pa.timestamp("us"),
        pa.decimal128(9, 2),
        pa.list_(TEXT),
        pa.struct([("a", TEXT)]),
        pa.map_(TEXT, TEXT),
    ],
    "ordering": [pa.bool_(), pa.binary(), pa.list_(TEXT), pa.struct([("a", TEXT)]), pa.map_(TEXT, TEXT), pa.decimal128(38, 20)],
}
NO_TYPE = [pa.null(), pa.uint64(), pa.float16(), pa.timestamp("ns"), pa.duration("s"), pa.time64("ns"), pa.decimal256(50, 2)]
CASES = [(use, kind) for use, kinds in TYPES_REFUSED.items() for kind in [*kinds, *NO_TYPE]]


@pytest.mark.parametrize(("use", "kind"), CASES, ids=str)
def test_a_type_that_cannot_be_key_partition_or_ordering_is_refused(tmp_path: Path, use: str, kind: pa.DataType) -> None:
    options = {"record_key": "id", "partition_by": "part", "ordering": "ts", use: "odd"}
    with refused(UnsupportedTypeError, "'odd'", "Cast|Use|Order|Give|Store"):
        hudi.create_table(str(tmp_path / "new"), SCHEMA.append(pa.field("odd", kind)), **options)  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "error", "names", "fix"),
    [
        ({"buckets": 0}, OptionError, "buckets=0", "Choose 1 to"),
        ({"buckets": -1}, OptionError, "buckets=-1", "Choose 1 to"),
        ({"buckets": 10**8}, OptionError, "buckets=100000000", "Choose 1 to"),
        ({"buckets": "8"}, OptionError, "buckets='8'", "Choose 1 to"),
        ({"buckets": 2.5}, OptionError, "buckets=2.5", "Choose 1 to"),
        ({"buckets": True}, OptionError, "buckets=True", "Choose 1 to"),
        ({"record_key": []}, OptionError, "needs a record key", "record_key="),
        ({"record_key": "nobody"}, SchemaError, "no column 'nobody'", "Its columns are id, part, ts, note"),
        ({"record_key": ["id", "id"]}, OptionError, "'id', 'id'", "once"),
        ({"partition_by": "nobody"}, SchemaError, "no column 'nobody'", "Its columns are"),
        ({"partition_by": ["part", "part"]}, OptionError, "'part', 'part'", "once"),
        ({"ordering": "nobody"}, SchemaError, "no column 'nobody'", "Its columns are"),
        ({"ordering": ""}, SchemaError, "no column ''", "Its columns are"),
        ({"record_key": [1]}, OptionError, "record_key has 1, which is no name", "as a text"),
        ({"partition_by": 5}, OptionError, "partition_by has 5, which is no name", "as a text"),
        ({"ordering": 5}, OptionError, "ordering has 5, which is no name", "as a text"),
        ({"name": "a/b"}, OptionError, "'a/b'", "Pass name="),
        ({"name": "\ud800"}, OptionError, r"'\\ud800' is not a table name", "a text in Unicode"),
        ({"name": 5}, OptionError, "5 is not a table name", "Pass name="),
        ({"url": "hdfs://host/table"}, OptionError, "scheme hdfs", "Use s3://"),
        ({"url": "s3://"}, OptionError, "not an address", "Write s3://bucket/prefix"),
        ({"storage_options": {"region": "x"}}, OptionError, "storage_options", "Leave them out"),
        ({"schema": {"id": "string"}}, OptionError, "dict is not a pyarrow schema", "Pass a pyarrow.Schema"),
        ({"schema": SCHEMA.append(pa.field("_hoodie_x", TEXT))}, SchemaError, "_hoodie_x", "Rename"),
        ({"schema": SCHEMA.append(pa.field("a b", TEXT))}, SchemaError, "'a b'", "Use ASCII"),
        ({"schema": SCHEMA.append(pa.field("NOTE", TEXT))}, SchemaError, "'NOTE'", "Rename one"),
    ],
    ids=str,
)
def test_a_bad_option_creates_nothing(tmp_path: Path, options: Any, error: type[TablesError], names: str, fix: str) -> None:
    given = {"url": str(tmp_path / "new"), "schema": SCHEMA, "record_key": "id", "partition_by": "part", "ordering": "ts"}
    with refused(error, names, fix):
        hudi.create_table(**(given | options))
    assert not (tmp_path / "new").exists()


def test_a_table_is_not_created_over_another(table: hudi.Table) -> None:
    again = {"record_key": "id", "partition_by": "part", "ordering": "ts", "buckets": 2}
    with refused(TableExistsError, "/table holds a table already", "open_table"):
        hudi.create_table(table.url, SCHEMA, **again)
    with refused(
        OtherDefinitionError, "another definition is there: its number of buckets is 2, not 3", "only columns can change"
    ):
        hudi.create_table(table.url, SCHEMA, **again | {"buckets": 3}, exist_ok=True)
    assert hudi.create_table(table.url, SCHEMA, **again, exist_ok=True).commits() == table.commits()


# --- scan and open_table ---


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "error", "names", "fix"),
    [
        ({"columns": ["id", "nobody"]}, SchemaError, "no column 'nobody'", "Its columns are .*id, part, ts, note"),
        ({"columns": "id"}, OptionError, "columns='id'", "Pass a list"),
        ({"columns": []}, OptionError, r"columns=\[\]", "at least one"),
        ({"columns": ["id", 1]}, OptionError, "columns has 1, which is no name", "as a text"),
        ({"columns": 5}, OptionError, "columns has 5, which is no name", "as a text"),
        ({"partitions": "p"}, OptionError, "partitions='p'", "Pass a list"),
        ({"partitions": 5}, OptionError, "partitions=5", "Pass a list"),
        ({"partitions": {"part": "p"}}, OptionError, "partitions={'part': 'p'}", "Pass a list"),
        ({"partitions": [{"nobody": 1}]}, OptionError, "'nobody'", "the partition columns: part"),
        ({"partitions": [{"part": 5}]}, OptionError, "'part': 5.*another type", "part: string"),
        ({"partitions": [5]}, OptionError, "5 selects no partition", "Pass a path"),
        ({"filter": pc.field("nobody") > 1}, SchemaError, "nobody", "Its columns are"),
        ({"filter": pc.field("ts") > "x"}, SchemaError, "int64, string", "Its columns are"),
        ({"filter": pc.add(pc.field("ts"), 1)}, SchemaError, "must evaluate to bool", "Its columns are"),
        ({"filter": pc.field(2) > 1}, OptionError, "cannot be used", "over column names"),
        ({"filter": "ts >"}, OptionError, "'ts >' is not a condition", "Compare columns with values"),
        ({"filter": [("ts", ">", 1)]}, OptionError, "filter=.*ts", "Pass a pyarrow expression"),
    ],
    ids=str,
)
def test_a_bad_scan_is_refused_before_anything_is_read(
    table: hudi.Table, options: Any, error: type[TablesError], names: str, fix: str
) -> None:
    assert_refused(table, lambda: table.scan(**options), error, names, fix)


def test_partitions_of_a_table_without_any_are_refused(tmp_path: Path) -> None:
    table = create(tmp_path, partitioned=False)
    with refused(OptionError, "has no partitions", "filter="):
        table.scan(partitions=["p"])


def test_open_table_refuses_an_unknown_choice(table: hudi.Table) -> None:
    with refused(OptionError, "metadata_table='x'", "'refuse' or 'remove'"):
        hudi.open_table(table.url, metadata_table="x")  # type: ignore[arg-type]
