"""The examples of lib/spark/README.md, as they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headgate_spark
from headgate_tables import hudi
from support.pages import fenced, quoted
from support.readers import read_by_us

PAGE = "lib/spark/README.md"
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("at", pa.int64())])
ORDERS = pa.Table.from_pylist([{"id": n, "day": f"2026-01-0{n % 2 + 1}", "at": n} for n in range(10)], schema=SCHEMA)
IN_RAW, IN_LAKE = '"s3://raw/orders"', '"s3://lake/orders"'


@pytest.fixture
def places(tmp_path: Path) -> tuple[str, str]:
    """Where the README's rows lie here, and its table, which is empty."""
    raw, lake = str(tmp_path / "raw.parquet"), str(tmp_path / "lake")
    pq.write_table(ORDERS, raw)
    hudi.create_table(lake, SCHEMA, record_key=["id"], partition_by=["day"], ordering="at", buckets=1).close()
    return raw, lake


def run(code: str, places: tuple[str, str], names: dict[str, Any]) -> None:
    raw, lake = places
    assert (IN_RAW in code, IN_LAKE in code) == (True, True), "the example has other addresses than this test replaces"
    exec(code.replace(IN_RAW, repr(raw)).replace(IN_LAKE, repr(lake)), names)


LOAD, READ, _, _, _, COPY, RESCALE, LIVE = fenced(PAGE, "python")  # three want PySpark 4: tests/spark_source


def test_the_example_of_loading_loads_the_rows_that_it_reads(spark: Any, places: tuple[str, str]) -> None:
    run(LOAD, places, {"spark": spark})
    assert read_by_us(Path(places[1])).sort_by("id").to_pylist() == ORDERS.to_pylist()


def test_the_example_of_reading_gives_what_its_filter_selects(spark: Any, places: tuple[str, str]) -> None:
    with hudi.open_table(places[1]) as table:
        table.upsert(ORDERS)
    assert IN_LAKE in READ
    names: dict[str, Any] = {"spark": spark}
    exec(READ.replace(IN_LAKE, repr(places[1])), names)
    assert sorted(map(tuple, names["orders"].collect())) == [(4,), (6,), (8,)]


def test_the_example_of_a_copy_makes_the_table(spark: Any, places: tuple[str, str], tmp_path: Path) -> None:
    assert "s3://lake/copy" in COPY
    exec(COPY.replace("s3://raw/orders", places[0]).replace("s3://lake/copy", str(tmp_path / "copy")), {"spark": spark})
    assert read_by_us(tmp_path / "copy").sort_by("id").to_pylist() == ORDERS.to_pylist()


def test_the_example_of_a_rescale_keeps_the_rows(spark: Any, places: tuple[str, str]) -> None:
    with hudi.open_table(places[1]) as table:
        table.upsert(ORDERS)
    assert IN_LAKE in RESCALE
    exec(RESCALE.replace(IN_LAKE, repr(places[1])), {"spark": spark})
    with hudi.open_table(places[1]) as table:
        assert table.definition.buckets == 512
    assert read_by_us(Path(places[1])).sort_by("id").to_pylist() == ORDERS.to_pylist()


def test_the_example_of_a_stream_has_each_batch_in_the_table_once(spark: Any, places: tuple[str, str], tmp_path: Path) -> None:
    _, lake = places
    raw = tmp_path / "files"
    raw.mkdir()
    pq.write_table(ORDERS, raw / "1.parquet")
    addresses = {IN_RAW: str(raw), IN_LAKE: lake, '"s3://raw/checkpoint"': str(tmp_path / "checkpoint")}
    code = LIVE
    for shown, here in addresses.items():
        assert shown in code
        code = code.replace(shown, repr(here))
    names: dict[str, Any] = {"spark": spark}
    exec(code, names)
    names["query"].processAllAvailable()
    names["query"].stop()
    assert read_by_us(Path(lake)).sort_by("id").to_pylist() == ORDERS.to_pylist()
    exec(code, names)
    names["query"].processAllAvailable()
    names["query"].stop()
    with hudi.open_table(lake) as table:
        assert len(table.commits()) == 1


def calls() -> list[str]:
    """Whole calls in the README's tables."""
    return [text for text in quoted(PAGE) if text.endswith(")") and text.partition("(")[0] in headgate_spark.__all__]


def test_the_calls_that_the_table_of_the_readme_shows_do_what_it_says(spark: Any, places: tuple[str, str]) -> None:
    raw, lake = places
    names: dict[str, Any] = {name: getattr(headgate_spark, name) for name in headgate_spark.__all__}
    with hudi.open_table(lake) as table:
        names |= {"df": spark.read.parquet(raw), "table": table}
        shown = {text.partition("(")[0]: text for text in calls()}
        assert set(shown) == {"plan_bulk_insert", "delete_partitions", "upsert", "delete"}
        planned = eval(shown["plan_bulk_insert"], names)
        assert (planned.files, planned.bytes, planned.replaced) == (1, Path(raw).stat().st_size, 0)
        headgate_spark.bulk_insert(names["df"], table)
        eval(shown["delete_partitions"], names)
        assert {row["day"] for row in read_by_us(Path(lake)).to_pylist()} == {"2026-01-02"}
        eval(shown["upsert"], names)
        assert read_by_us(Path(lake)).num_rows == ORDERS.num_rows
        eval(shown["delete"], names)
    assert read_by_us(Path(lake)).num_rows == 0


@pytest.mark.parametrize("mode", [text for text in quoted(PAGE) if text.startswith("mode=") and "read" not in text])
def test_each_mode_of_the_readme_is_taken(spark: Any, places: tuple[str, str], mode: str) -> None:
    code = LOAD.rstrip().removesuffix(")") + f", {mode})"
    run(code, places, {"spark": spark})
    assert read_by_us(Path(places[1])).num_rows == ORDERS.num_rows
