"""Conditions in SQL: rows as DuckDB selects them, and files that are not opened because no row of them can match."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import OptionError, SchemaError
from headgate_tables.where import where
from support.counting import counted

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.string()),
        ("seen", pa.timestamp("us", tz="UTC")),
        ("born", pa.date32()),
        ("price", pa.decimal128(8, 2)),
        ("ok", pa.bool_()),
        ("ratio", pa.float64()),
        ("small", pa.int32()),
        ("Label", pa.string()),
    ]
)


def row(number: int) -> dict[str, Any]:
    empty = number % 4 == 3
    return {
        "id": number,
        "day": f"2026-01-0{number % 3 + 1}",
        "seen": None if empty else datetime(2026, 1, 1, number, tzinfo=UTC),
        "born": None if empty else date(2026, 2, number + 1),
        "price": None if empty else Decimal(f"{number}.50"),
        "ok": None if empty else number % 2 == 0,
        "ratio": None if empty else number / 2,
        "small": None if empty else -number,
        "Label": None if empty else ["it's", "50%_a", "back\\slash"][number % 3],
    }


ROWS = pa.Table.from_pylist([row(number) for number in range(12)], SCHEMA)
CONDITIONS = [
    "id = 5",
    "5 = id",
    "5 < id",
    "9 >= id",
    "id <> 5",
    "id != 5 AND id < 8",
    "id in (1, 2, -3, 11)",
    "id NOT IN (1, 2)",
    "id NOT IN (1, NULL)",
    "small NOT IN (-1, -2)",
    "NOT (small IN (-1, -2))",
    "NOT (small IN (-1, -2) OR day = '2026-01-02')",
    "NOT (small IN (-1) AND ok)",
    "id BETWEEN 2 AND 4",
    "small NOT BETWEEN -4 AND -2",
    "id > 1.5 AND id < 2.5",
    "id = 1.5",
    "id < 1e1",
    "id < 99999999999999999999",
    "small > -5000000000",
    "small IN (-1, 1.5)",
    "day = '2026-01-02'",
    "day > '2026-01-01' AND day < '2026-01-03'",
    "day LIKE '2026-01-0%'",
    "day LIKE '%_03'",
    '"label" LIKE \'50%\'',
    '"Label" = \'it\'\'s\'',
    '"Label" LIKE \'back\\%\'',
    '"Label" ILIKE \'BACK%\'',
    '"Label" NOT LIKE \'5%\'',
    '"label" IS NOT NULL',
    "seen >= '2026-01-01 08:00+00'",
    "seen >= TIMESTAMPTZ '2026-01-01 08:00:00+00'",
    "seen < '2026-01-01T05:00:00Z'",
    "born = DATE '2026-02-03'",
    "born >= '2026-02-05'",
    "price = 5.5",
    "price > 5.505",
    "price IN (1.5, 2.505)",
    "ok",
    "NOT ok",
    "ok = true",
    "ok IS TRUE",
    "ok IS NOT TRUE",
    "ok IS NOT FALSE",
    "price IS NULL",
    "price IS NOT NULL AND NOT ok",
    "ratio > 2 AND NOT (ratio > 4)",
    "ratio = 0.5",
    "ID > 3 AND (id < 5 OR id = 7)",
    "id = 1 OR id = 2 AND ok",
    "true",
    "day = day",
]  # fmt: skip


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Half of the rows in base files, the others in logs, in three partitions."""
    url = str(tmp_path_factory.mktemp("where") / "table")
    with hudi.create_table(url, SCHEMA, record_key="id", partition_by="day", ordering="id", buckets=2) as table:
        table.upsert(ROWS.slice(0, 6))
        table.upsert(ROWS.slice(6))
    return url


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_selects_the_rows_that_duckdb_selects(condition: str, url: str) -> None:
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        con.register("given", ROWS)
        expected = sorted(found for (found,) in con.execute(f"SELECT id FROM given WHERE {condition}").fetchall())
    with hudi.open_table(url) as table:
        assert sorted(table.scan(["id"], filter=condition).to_table()["id"].to_pylist()) == expected


def test_a_time_without_a_zone_is_utc(url: str) -> None:
    with hudi.open_table(url) as table:
        found = [
            table.scan(["id"], filter=f"seen = '2026-01-01 05:00{zone}'").to_table()["id"].to_pylist() for zone in ("", " UTC")
        ]
        assert found == [[5], [5]]
        assert table.scan(["id"], filter="seen = '2026-01-01 05:00+05:00'").to_table()["id"].to_pylist() == [0]


def test_nan_is_neither_above_nor_below_as_in_an_expression(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    with hudi.create_table(str(tmp_path / "t"), schema, record_key="id", buckets=1) as table:
        table.upsert(pa.table({"id": [1, 2, 3], "x": [float("nan"), 1.0, None]}, schema))
        for condition, expected in (("x > 0", [2]), ("NOT (x > 5)", [1, 2]), ("x <= 5", [2])):
            assert sorted(table.scan(filter=condition).to_table()["id"].to_pylist()) == expected, condition


def test_a_text_that_is_no_float_is_refused_with_its_type(tmp_path: Path) -> None:
    """Python has a decimal that no float can hold."""
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    with hudi.create_table(str(tmp_path / "t"), schema, record_key="id", buckets=1) as table:
        table.upsert(pa.table({"id": [1], "x": [1.0]}, schema))
        with pytest.raises(OptionError):
            table.scan(filter="x = 'sNaN'").to_table()


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_a_list_that_has_zero_has_both_zeros(kind: pa.DataType, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", kind)])
    with hudi.create_table(str(tmp_path / "t"), schema, record_key="id", buckets=1) as table:
        table.upsert(pa.table({"id": [1, 2, 3, 4], "x": [-0.0, 0.0, 1.0, None]}, schema))
        for condition, expected in (
            ("x IN (0)", [1, 2]),
            ("x IN (-0.0, 7)", [1, 2]),
            ("x NOT IN (0)", [3]),
            ("x NOT IN (1)", [1, 2]),
        ):
            assert sorted(table.scan(filter=condition).to_table()["id"].to_pylist()) == expected, condition


@pytest.mark.parametrize(
    "condition",
    [
        "",
        "id >",
        "id",
        "5",
        "id = NULL",
        "id = 'five'",
        "day = 5",
        "ok = 'true'",
        "born = 'soon'",
        "seen > 5",
        "id > 5 GROUP BY id",
        "id > 5; DROP TABLE x",
        "SELECT 1",
        "id IN (SELECT 1)",
        "id = (SELECT 1)",
        "lower(day) = 'x'",
        "id + 1 = 2",
        "id::text = '1'",
        "id = small",
        "id LIKE '1%'",
        "day SIMILAR TO 'x'",
        "day LIKE '!%' ESCAPE '!'",
        "id BETWEEN SYMMETRIC 4 AND 2",
        "id IN id",
        "id = ANY (1, 2)",
        "other.id = 1",
        "id IS 5",
        "id IS DISTINCT FROM 5",
        "id = ?",
        "1 = 1",
        "id = CAST('5' AS INTEGER)",
    ],
)
def test_what_is_no_such_condition_is_refused(condition: str, url: str) -> None:
    with hudi.open_table(url) as table, pytest.raises(OptionError) as caught:
        table.scan(filter=condition)
    assert repr(condition) in caught.value.message
    assert "DuckDB" in caught.value.fix


def test_an_unknown_column_is_named_with_those_that_there_are(url: str) -> None:
    with hudi.open_table(url) as table:
        with pytest.raises(SchemaError, match=r"no column 'nope'.*day") as caught:
            table.scan(filter="nope = 1")
        assert "single quotes" in caught.value.fix
        with pytest.raises(SchemaError, match="no column 'JFK'"):
            table.scan(filter='day = "JFK"')


@pytest.mark.parametrize(
    "condition",
    ["day = '2026-01-02'", "day IN ('2026-01-02', 'x')", "NOT (day <> '2026-01-02')", "day LIKE '2026%' AND '2026-01-02' = day"],
)
def test_files_of_other_partitions_are_not_opened(condition: str, url: str) -> None:
    table, store = counted(url)
    with store.forgetting():
        assert table.scan(["id"], filter=condition).to_table().num_rows == 4
    assert store.data_files()
    assert all(path.startswith("2026-01-02/") for path in store.data_files())


@pytest.mark.slow
def test_row_groups_and_columns_that_are_not_wanted_are_not_read(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("text", pa.string())])
    count = 400_000
    numbers = pa.array(range(count))
    with hudi.create_table(str(tmp_path / "t"), schema, record_key="id", ordering="at", buckets=1) as made:
        made.upsert(
            pa.table(
                {
                    "id": numbers,
                    "at": numbers,
                    "text": pa.array([f"{number * 7919 % 1_000_003:040d}" for number in range(count)]),
                },
                schema,
            )
        )
    table, store = counted(made.url)
    assert len(list(Path(made.url.removeprefix("file://")).glob("*.parquet"))) == 1

    def read(columns: list[str] | None, condition: str | None) -> tuple[int, int]:
        with store.forgetting():
            rows = table.scan(columns, filter=condition).to_table().num_rows
        return rows, sum(end - start for start, end in store.ranges)

    rows, some = read(["id"], "at = 7")
    assert rows == 1
    _, column = read(["id"], None)
    _, everything = read(None, None)
    assert some < everything / 2
    assert column < everything / 2


@pytest.mark.parametrize(("join", "found"), [("OR", 12), ("AND", 0)])
def test_a_condition_may_have_thousands_of_terms(join: str, found: int) -> None:
    text = f" {join} ".join(f"id = {number}" for number in range(3_000))
    assert ROWS.filter(where(text, SCHEMA)).num_rows == found
    assert ROWS.filter(where(f"NOT ({text})", SCHEMA)).num_rows == 12 - found


def test_terms_of_a_chain_keep_their_order_and_their_parentheses() -> None:
    text = "id > 1 AND id < 9 AND (id = 2 OR id = 5 OR (id = 7 AND ok IS NULL)) AND id <> 5"
    assert ROWS.filter(where(text, SCHEMA))["id"].to_pylist() == [2, 7]


def test_a_condition_that_is_nested_without_end_is_refused() -> None:
    with pytest.raises(OptionError):
        where("(" * 5_000 + "id = 1" + ")" * 5_000, SCHEMA)
    with pytest.raises(OptionError, match="nested too deeply"):
        where("NOT " * 200 + "(" * 200 + "id = 1" + ")" * 200, SCHEMA)
