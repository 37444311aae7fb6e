"""Reading through the SDK: rows of a running cluster, and of a table's address alone, in the forms that programs want."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import headgate
from headgate_tables import hudi
from support.cluster import Cluster
from support.readers import read_by_hudi_rs, without_meta
from support.same_rows import assert_same_rows

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("price", pa.decimal128(8, 2)),
        ("seats", pa.int64()),
        ("ok", pa.bool_()),
        ("tags", pa.list_(pa.string())),
    ]
)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MANY = 2**60 + 1
"""No float64."""


def rows(first: int, last: int, seats: int | None = MANY) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "id": number,
                "day": f"2026-01-0{number % 3 + 1}",
                "at": BEGIN + timedelta(hours=number),
                "price": Decimal(f"{number}.50"),
                "seats": seats if number % 2 else None,
                "ok": None if number % 5 == 0 else number % 2 == 0,
                "tags": ["a", str(number)],
            }
            for number in range(first, last)
        ],
        SCHEMA,
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("reading") / "cluster", writers=1) as made:
        yield made


@pytest.fixture(scope="module")
def orders(cluster: Cluster) -> Iterator[headgate.Table]:
    """Twenty rows in two commits; of the second ten new ones, and new seats for five."""
    with headgate.connect(cluster.address) as hg:
        table = hg.create_table("orders", SCHEMA, key="id", ordering="at", partition_by="day", buckets=2)
        with table.channel("a") as ch:
            ch.upsert(rows(0, 10))
            ch.flush("queryable")
            ch.upsert(rows(5, 20, seats=7))
        yield table


def path_of(table: headgate.Table) -> Path:
    return Path(table.info.url.removeprefix("file://"))


@pytest.mark.slow
def test_a_scan_gives_the_rows_that_hudi_rs_reads(orders: headgate.Table) -> None:
    expected = without_meta(read_by_hudi_rs(path_of(orders)))
    assert expected.num_rows == 20
    scan = orders.scan()
    assert_same_rows(scan.to_arrow(), expected, "to_arrow")
    assert_same_rows(pa.table(scan), expected, "the Arrow stream")
    assert_same_rows(pa.RecordBatchReader.from_stream(scan).read_all(), expected, "a reader")
    assert scan.schema == SCHEMA


def test_pandas_gets_whole_numbers_in_lists_structs_and_maps_as_they_are(cluster: Cluster) -> None:
    large = 2**53 + 1  # no float64 has it
    kinds = {
        "list": pa.list_(pa.int64()),
        "struct": pa.struct([("n", pa.int64()), ("s", pa.string())]),
        "map": pa.map_(pa.string(), pa.int64()),
        "deep": pa.list_(pa.struct([("n", pa.list_(pa.int64()))])),
    }
    row = {"id": 1, "list": [large, None], "struct": {"n": large, "s": "a"}, "map": [("k", large), ("l", None)]}
    rows = [row | {"deep": [{"n": [None, large]}, None]}, {"id": 2, "struct": {"n": None, "s": "b"}}]
    with headgate.connect(cluster.address) as hg:
        table = hg.create_table("nested", pa.schema([("id", pa.int64()), *kinds.items()]), key="id")
        with table.channel("a") as ch:
            ch.upsert(pa.Table.from_pylist(rows, table.info.schema))
            ch.flush("queryable")
        frame = table.scan().to_pandas().sort_values("id")
    for name in kinds:
        found = frame[name].to_list()
        assert found == [each.get(name) for each in rows], name
        assert repr(found).count(str(large)) == 1, name


def test_pandas_polars_and_duckdb_get_the_same_values(orders: headgate.Table) -> None:
    scan = orders.scan()
    expected = sorted(scan.to_arrow().to_pylist(), key=lambda row: row["id"])
    assert sorted(scan.to_polars().to_dicts(), key=lambda row: row["id"]) == expected

    frame = scan.to_pandas().sort_values("id")
    assert list(frame.columns) == SCHEMA.names
    assert frame["seats"].dtype == pd.Int64Dtype()
    assert [None if seats is pd.NA else seats for seats in frame["seats"]] == [row["seats"] for row in expected]
    assert frame["id"].dtype == "int64"
    assert [found.to_pydatetime() for found in frame["at"]] == [row["at"] for row in expected]
    assert list(frame["price"]) == [row["price"] for row in expected]
    assert scan.to_pandas(types_mapper=pd.ArrowDtype)["seats"].dtype == pd.ArrowDtype(pa.int64())

    with duckdb.connect() as con:
        relation = scan.to_duckdb(con)
        for _ in range(2):  # a relation may be queried more than once
            assert relation.aggregate("count(*), sum(seats)").fetchall() == [
                (20, sum(row["seats"] for row in expected if row["seats"] is not None))
            ]
        assert con.sql("SELECT count(*) FROM relation WHERE day = '2026-01-02'").fetchall() == [(7,)]
        scan.to_duckdb(con).create_view("orders")
        assert con.sql("SELECT price FROM orders WHERE id = 3").fetchall() == [(Decimal("3.50"),)]


def test_other_libraries_take_the_scan_itself(orders: headgate.Table) -> None:
    scan = orders.scan(["id", "price"], where="id < 3")
    assert sorted(pl.DataFrame(scan)["id"]) == [0, 1, 2]
    with duckdb.connect() as con:
        assert con.sql("SELECT sum(id) FROM scan").fetchall() == [(3,)]


@pytest.mark.parametrize("where", ["id >= 3 AND day = '2026-01-01'", (pc.field("id") >= 3) & (pc.field("day") == "2026-01-01")])
def test_a_condition_is_sql_or_an_expression(where: str | pc.Expression, orders: headgate.Table) -> None:
    found = orders.scan(["id"], where=where).to_arrow()
    assert found.column_names == ["id"]
    assert sorted(found["id"].to_pylist()) == [3, 6, 9, 12, 15, 18]


def test_partitions_bound_a_scan(orders: headgate.Table) -> None:
    assert orders.scan(partitions=["2026-01-02"]).to_arrow().num_rows == 7
    assert orders.scan(partitions=[{"day": "2026-01-03"}]).to_arrow().num_rows == 6


def test_the_past_and_what_has_changed_since_are_asked_for_by_clock(orders: headgate.Table) -> None:
    now = orders.scan()
    with hudi.open_table(orders.info.url) as table:
        times = [commit.completion for commit in table.commits()]
    assert now.as_of == times[-1]
    first = times[0]
    moment = datetime.strptime(first + "000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    for as_of in (first, moment, moment.isoformat(), str(moment).replace("+00:00", "")):
        assert orders.scan(as_of=as_of).to_arrow().num_rows == 10, as_of
        assert sorted(orders.scan(["id"], since=as_of).to_arrow()["id"].to_pylist()) == list(range(5, 20))
    assert orders.scan(as_of="1 day ago").to_arrow().num_rows == 0
    assert orders.scan(since="1 day ago").to_arrow().num_rows == 20
    assert orders.scan(since=now.as_of).to_arrow().num_rows == 0


@pytest.mark.slow
def test_a_scan_stays_as_it_was_while_rows_come(cluster: Cluster) -> None:
    with headgate.connect(cluster.address) as hg:
        table = hg.create_table("growing", [("id", int)], key="id")
        with table.channel("a") as ch:
            ch.upsert([{"id": 1}])
            ch.flush("queryable")
            scan = table.scan()
            ch.upsert([{"id": 2}])
            ch.flush("queryable")
            assert scan.to_arrow()["id"].to_pylist() == [1]
            assert table.scan(since=scan.as_of).to_arrow()["id"].to_pylist() == [2]


def test_a_path_or_an_address_is_read_without_a_cluster(orders: headgate.Table) -> None:
    for address in (orders.info.url, str(path_of(orders))):
        opened = headgate.open(address)
        assert (opened.name, opened.schema, opened.url) == ("orders", SCHEMA, orders.info.url)
        assert opened.scan(where="id = 7").to_polars()["seats"].to_list() == [7]


async def test_asyncio_reads_the_same(cluster: Cluster, orders: headgate.Table) -> None:
    async with headgate.aio.connect(cluster.address) as hg:
        table = await hg.table("orders")
        scan = await table.scan(where="id < 12")
        assert (await scan.to_arrow()).num_rows == len(await scan.to_pandas()) == len(await scan.to_polars()) == 12
        assert sum([batch.num_rows async for batch in scan.batches()]) == 12
        assert (scan.schema, scan.as_of) == (SCHEMA, orders.scan().as_of)
        assert pa.table(scan).num_rows == 12
    opened = await headgate.aio.open(orders.info.url)
    assert (opened.name, opened.url, opened.schema) == ("orders", orders.info.url, SCHEMA)
    assert (await (await opened.scan(["id"], as_of="1 day ago")).to_arrow()).num_rows == 0
    with duckdb.connect() as con:
        assert scan.to_duckdb(con).aggregate("max(id)").fetchall() == [(11,)]


def test_errors_are_those_of_the_sdk_and_name_what_is_there(orders: headgate.Table, tmp_path: Path) -> None:
    with pytest.raises(headgate.SchemaError, match=r"no column 'nope'.*seats"):
        orders.scan(["nope"])
    with pytest.raises(headgate.InvalidArgumentError, match="is not a condition"):
        orders.scan(where="id >")
    with pytest.raises(headgate.InvalidArgumentError, match="no time zone"):
        orders.scan(as_of=datetime(2026, 1, 1))  # noqa: DTZ001 - that is the case
    with pytest.raises(headgate.TableNotFoundError, match="holds no Hudi table"):
        headgate.open(str(tmp_path))


def test_base_files_alone_are_read_when_asked_for(tmp_path: Path) -> None:
    with hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key="id", buckets=1) as made:
        made.upsert(rows(0, 4))
        made.upsert(rows(1, 2, seats=7))
    opened = headgate.open(str(tmp_path / "t"))
    assert opened.scan(["seats"], where="id = 1", read_optimized=True).to_arrow()["seats"].to_pylist() == [MANY]
    assert opened.scan(["seats"], where="id = 1").to_arrow()["seats"].to_pylist() == [7]


def test_a_file_that_is_gone_is_named_while_rows_are_read(tmp_path: Path) -> None:
    with hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key="id", buckets=1) as made:
        made.upsert(rows(0, 3))
    opened = headgate.open(str(tmp_path / "t"))
    scan = opened.scan()
    next((tmp_path / "t").glob("*.parquet")).unlink()
    for read in (scan.to_arrow, scan.to_pandas, scan.to_polars, lambda: list(scan.batches())):
        with pytest.raises(headgate.UnreadableTableError, match=r"parquet is part of the table, but not there"):
            read()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "line", "extra"),
    [
        ("headgate_tables", "headgate.open('/tmp')", "read"),
        ("obstore", "headgate.open('/tmp')", "read"),
        ("pandas", "headgate.Scan(None).to_pandas()", "pandas"),
        ("polars", "headgate.Scan(None).to_polars()", "polars"),
    ],
)
def test_a_missing_package_is_one_message_with_the_line_for_pip(missing: str, line: str, extra: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None\nimport headgate\n{line}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert last == (
        f"headgate.errors.MissingExtraError: this needs {missing}, which is not installed. Run: pip install 'headgate[{extra}]'"
    )


def test_the_sdk_alone_imports_neither_the_table_library_nor_pandas() -> None:
    names = "['headgate_tables', 'pandas', 'polars', 'duckdb', 'sqlglot']"
    program = f"import sys, headgate; print([name for name in {names} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
