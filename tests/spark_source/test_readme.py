"""The example of lib/spark/README.md that wants PySpark 4, as it stands, and the options that the page names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate_spark.source_options import NAMES
from headgate_tables import hudi
from support.pages import fenced, quoted, text_of

PAGE = "lib/spark/README.md"
IN_LAKE, IN_SQL = '"s3://lake/orders"', "'s3://lake/orders'"
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("at", pa.int64())])


def test_the_example_reads_a_day_and_streams_later_commits(spark: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "orders")
    with hudi.create_table(url, SCHEMA, record_key="id", partition_by=["day"], ordering="at", buckets=1) as table:
        table.upsert(pa.Table.from_pylist([{"id": n, "day": f"2026-01-0{n % 2 + 1}", "at": n} for n in range(10)], SCHEMA))
        *_, example, _ = fenced(PAGE, "python")
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


def test_the_page_names_every_option() -> None:
    table = text_of(PAGE).partition("| option | |")[2].partition("\n\n")[0]
    first_cells = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)
    named = {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}
    assert named == set(NAMES) - {"path"}
