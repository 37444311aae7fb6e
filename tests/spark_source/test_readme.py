"""The example of lib/spark/README.md that wants PySpark 4, as it stands, and the options that the page names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import headgate
from headgate_spark import cluster_access
from headgate_spark.sink_options import NAMES as SINK_NAMES
from headgate_spark.source_options import NAMES
from headgate_tables import hudi
from support.dev_cluster import dev_cluster
from support.pages import fenced, quoted, text_of
from support.readers import read_by_hudi_rs

PAGE = "lib/spark/README.md"
IN_LAKE, IN_SQL = '"s3://lake/orders"', "'s3://lake/orders'"
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("at", pa.int64())])


def test_the_example_reads_a_day_and_streams_later_commits(spark: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "orders")
    with hudi.create_table(url, SCHEMA, record_key="id", partition_by=["day"], ordering="at", buckets=1) as table:
        table.upsert(pa.Table.from_pylist([{"id": n, "day": f"2026-01-0{n % 2 + 1}", "at": n} for n in range(10)], SCHEMA))
        (example,) = (each for each in fenced(PAGE, "python") if "headgate_spark.source" in each)
        assert IN_LAKE in example
        names: dict[str, Any] = {"spark": spark}
        exec(example.replace(IN_LAKE, repr(url)), names)
        assert sorted(each.id for each in names["orders"].collect()) == [0, 2, 4, 6, 8]
        begin = names["changes"].writeStream.format("memory").queryName("later").option("checkpointLocation", str(tmp_path / "c"))
        query = begin.start()
        try:
            query.processAllAvailable()
            table.upsert(pa.Table.from_pylist([{"id": 3, "day": "2026-01-02", "at": 99}], SCHEMA))
            query.processAllAvailable()
            assert [tuple(each) for each in spark.table("later").collect()] == [(3, "2026-01-02", 99)]
        finally:
            query.stop()
    [statement] = [text for text in quoted(PAGE) if text.startswith("CREATE")]
    spark.sql(statement.replace(IN_SQL, repr(url)))
    assert spark.table("orders").count() == 10


def test_the_example_writes_a_frame_and_a_stream_by_address(spark: Any, tmp_path: Path) -> None:
    (example,) = (each for each in fenced(PAGE, "python") if ".save(" in each and "coordinator:7070" not in each)
    url = tmp_path / "orders"
    hudi.create_table(str(url), SCHEMA, record_key="id", partition_by=["day"], ordering="at", buckets=1).close()
    write_as_shown(example, {IN_LAKE: str(url)}, spark, tmp_path)
    assert sorted(read_by_hudi_rs(url)["id"].to_pylist()) == [*range(5), *range(100, 110)]


def test_the_example_sends_a_frame_and_a_stream_through_a_cluster(spark: Any, state_home: Path, tmp_path: Path) -> None:
    del state_home
    (example,) = (each for each in fenced(PAGE, "python") if "coordinator:7070" in each)
    with dev_cluster(tmp_path) as (address, store), headgate.connect(address) as cluster:
        cluster.create_table("orders", SCHEMA, key="id", partition_by="day", ordering="at", buckets=1)
        write_as_shown(example, {'"coordinator:7070"': address}, spark, tmp_path)
        assert sorted(read_by_hudi_rs(store / "orders")["id"].to_pylist()) == [*range(5), *range(100, 110)]


def write_as_shown(example: str, places: dict[str, str], spark: Any, folder: Path) -> None:
    """Runs an example that writes the frame ``orders``, of the ids 100 to 109, and the stream ``changes``, of 0 to 4."""
    raw, columns = folder / "raw", "id long, day string, at long"
    raw.mkdir()
    pq.write_table(pa.Table.from_pylist([{"id": n, "day": "2026-01-02", "at": n} for n in range(5)], SCHEMA), raw / "1.parquet")
    names: dict[str, Any] = {
        "orders": spark.createDataFrame([(n, "2026-01-01", n) for n in range(100, 110)], columns),
        "changes": spark.readStream.schema(columns).parquet(str(raw)),
    }
    for shown, here in {**places, '"s3://raw/checkpoint"': str(folder / "c")}.items():
        assert shown in example
        example = example.replace(shown, repr(here))
    exec(example, names)
    try:
        names["query"].processAllAvailable()
    finally:
        names["query"].stop()


def test_the_page_names_every_option() -> None:
    _, source, sink = text_of(PAGE).split("| option | |")
    assert options_in(source) == set(NAMES) - {"path"}
    assert options_in(sink) == set(SINK_NAMES) - {"path", *cluster_access.NAMES}


def options_in(text: str) -> set[str]:
    """In the first cells of the table at the beginning of the text."""
    first_cells = re.findall(r"^\| ([^|]+) \|", text.partition("\n\n")[0], re.MULTILINE)
    return {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}
