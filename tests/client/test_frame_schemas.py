"""A table's schema comes from rows that are there: frames, Arrow data, a Parquet file. The table then takes those rows."""

import datetime
import decimal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hudi import HudiTable
from pyarrow import parquet

import headgate
from headgate.errors import FixCall, InvalidArgumentError, SchemaError
from headgate.evolving import rereadable
from headgate.schemas import SchemaLike, schema_of
from support.cluster import Cluster
from support.processes import READY_S

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
ROWS = [
    {
        "id": 1,
        "name": "a",
        "at": NOON,
        "price": 1.5,
        "paid": True,
        "day": NOON.date(),
        "tags": ["x"],
        "sum": decimal.Decimal("1.25"),
    },
    {"id": 2, "name": None, "at": NOON, "price": None, "paid": None, "day": None, "tags": None, "sum": None},
]
ARROW = pa.Table.from_pylist(ROWS)
WANTED = {
    "id": pa.int64(),
    "name": pa.string(),
    "at": pa.timestamp("us", tz="UTC"),
    "price": pa.float64(),
    "paid": pa.bool_(),
    "day": pa.date32(),
    "tags": pa.list_(pa.string()),
    "sum": pa.decimal128(3, 2),
}


def parquet_file(folder: Path) -> Path:
    path = folder / "rows.parquet"
    parquet.write_table(ARROW, path)
    return path


def relation(_folder: Path) -> SchemaLike:
    rows = ARROW  # noqa: F841 - DuckDB finds it by its name
    return duckdb.connect().sql("FROM rows")


SOURCES: dict[str, Any] = {
    "table": lambda _: ARROW,
    "batch": lambda _: ARROW.to_batches()[0],
    "reader": lambda _: ARROW.to_reader(),
    "pandas": lambda _: ARROW.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda _: pl.DataFrame(ARROW),
    "duckdb": relation,
    "parquet": parquet_file,
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[headgate.Headgate]:
    options = {"coordinator": ["--checkpoint-min-interval", "50ms"]}
    with (
        Cluster(tmp_path_factory.mktemp("frames") / "cluster", options=options) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        yield hg


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOURCES)
def test_a_table_made_from_rows_takes_them_and_other_readers_see_them(
    kind: str, program: headgate.Headgate, tmp_path: Path
) -> None:
    table = program.create_table(f"of-{kind}", SOURCES[kind](tmp_path), key="id")
    found = {field.name: field.type for field in table.info.schema}
    assert {name: str(found[name]).replace("element", "item") for name in found} == {
        name: str(wanted).replace("element", "item").replace("decimal128(3, 2)", str(found["sum"]))
        for name, wanted in WANTED.items()
    }
    with table.channel("c") as channel:
        rows = SOURCES[kind](tmp_path)
        channel.upsert(parquet.read_table(rows) if isinstance(rows, Path) else rows)
        channel.flush("queryable")
    read = pa.Table.from_batches(HudiTable(table.info.url).read()).select(list(WANTED)).sort_by("id").to_pylist()
    assert read == ROWS


def test_plain_pandas_frames_are_tables_too(program: headgate.Headgate) -> None:
    frame = pd.DataFrame({"id": [1, 2], "at": pd.to_datetime(["2026-01-01", "2026-01-02"], utc=True), "kind": ["a", "b"]})
    frame["kind"] = frame["kind"].astype("category")
    table = program.create_table("plain", frame, key="id", exist_ok=True)
    assert table.info.schema.types == [pa.int64(), pa.timestamp("us", tz="UTC"), pa.string()]
    with table.channel("c") as channel:
        channel.upsert(frame)
        channel.flush("queryable")
    read = pa.Table.from_batches(HudiTable(table.info.url).read()).select(["id", "at", "kind"]).sort_by("id").to_pylist()
    assert read == [{"id": row["id"], "at": row["at"].to_pydatetime(), "kind": row["kind"]} for row in frame.to_dict("records")]


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (pa.uint8(), pa.int32()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.int64()),
        (pa.float16(), pa.float32()),
        (pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC")),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.timestamp("ms"), pa.timestamp("ms")),
    ],
)
def test_types_that_a_table_lacks_become_the_next_wider_one(narrow: pa.DataType, wide: pa.DataType) -> None:
    rows = pa.schema([pa.field("x", narrow, nullable=False, metadata={"a": "b"})], metadata={"pandas": "{}"}).empty_table()
    made = schema_of(rows)
    assert made.equals(pa.schema([pa.field("x", wide, nullable=False)]), check_metadata=True)


def test_a_schema_that_is_given_as_such_is_left_alone() -> None:
    schema = pa.schema([("x", pa.uint8())])
    assert schema_of(schema) is schema


def test_a_parquet_file_gives_its_schema_without_its_rows(tmp_path: Path) -> None:
    path = parquet_file(tmp_path)
    data = bytearray(path.read_bytes())
    data[4:40] = bytes(36)
    path.write_bytes(data)
    with pytest.raises(OSError, match=r".+"):
        parquet.read_table(path)
    assert schema_of(path).names == list(WANTED)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (pa.table({"id": [1], "none": pa.nulls(1)}), "'none' has nulls alone.*cast it"),
        (pd.DataFrame({"id": [1]}, index=["a"]), "index.*reset_index"),
        (Path("absent.parquet"), "no file absent.parquet"),
        ("orders.parquet", r"'orders.parquet' is not a schema.*Path"),
    ],
)
def test_what_gives_no_schema_is_refused_by_name(rows: SchemaLike, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says) as refused:
        schema_of(rows)
    assert isinstance(refused.value, FixCall)


def test_a_file_of_another_format_is_refused_with_the_command_that_takes_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,name\n1,a\n")
    with pytest.raises(InvalidArgumentError, match="headgate load"):
        schema_of(path)
    path.write_bytes(b"")
    with pytest.raises(InvalidArgumentError, match="cannot be read as Parquet"):
        schema_of(path)


@pytest.mark.parametrize("read", [schema_of, rereadable])
def test_a_frame_that_arrow_cannot_hold_is_refused_with_its_column(read: Callable[[Any], object]) -> None:
    with pytest.raises(SchemaError, match="more than once: a"):
        read(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(SchemaError, match="column 'b' have no common Arrow type"):
        read(pd.DataFrame({"a": [1, 2], "b": [b"x", 1.5]}))
    with pytest.raises(InvalidArgumentError, match=r"not a stream of rows.*Pass a table"):
        read(pa.chunked_array([[1]]))
