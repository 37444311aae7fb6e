"""`headgate table describe --for spark`: Spark runs what is printed, and the table stays one that we go on with."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables import hudi
from headgate_tables.hudi.properties import PROPERTIES_PATH
from support.oracle import Row
from support.readers import assert_all_agree
from support.tracked import Tracked

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("zone", pa.string()), ("ts", pa.int64()), ("note", pa.string())])


def rows(numbers: range, second: int, note: str) -> list[Row]:
    return [{"id": f"k{n}", "part": f"p{n % 2}", "zone": "x/y", "ts": second, "note": note} for n in numbers]


def printed(path: Path, *options: str) -> str:
    python = os.environ["HEADGATE_CLUSTER_PYTHON"]
    command = [python, "-m", "headgate_cli", "table", "describe", str(path), "--for", "spark", *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def statements(script: str) -> list[str]:
    lines = [line for line in script.splitlines() if not line.startswith("--")]
    return [each.strip() for each in "\n".join(lines).split(";\n") if each.strip()]


@pytest.mark.parametrize(
    ("partition", "ordering", "version"),
    [(["part"], "ts", 8), (["part", "zone"], "ts", 8), (["part", "zone"], None, 9)],
    ids=["one partition column", "two", "two, commit time, version 9"],
)
def test_spark_writes_with_what_is_printed_and_no_key_is_doubled(
    spark: Any, tmp_path: Path, partition: list[str], ordering: str | None, version: int
) -> None:
    name = f"printed_{version}_{len(partition)}"
    table = Tracked(tmp_path / name, SCHEMA, partition=partition, ordering=ordering, buckets=3, table_version=version)
    table.upsert(rows(range(8), 1, "ours"))
    table.upsert(rows(range(4, 12), 2, "ours"))
    before = (table.path / PROPERTIES_PATH).read_bytes()
    sql = statements(printed(table.path) + "\n")
    options = json.loads(printed(table.path, "--json"))["options"]
    source = tmp_path / "rows.parquet"

    changed = rows(range(6, 16), 3, "by options")
    pq.write_table(table.arrow(changed), source)
    spark.read.parquet(str(source)).write.format("hudi").options(**options).mode("append").save(str(table.path))
    table.oracle.upsert(changed)
    assert_all_agree(spark, table.path, table.expected())

    session = spark.newSession()
    for statement in sql:
        session.sql(statement)
    changed = rows(range(10, 20), 4, "by SQL")
    pq.write_table(table.arrow(changed), tmp_path / "more.parquet")
    session.read.parquet(str(tmp_path / "more.parquet")).createOrReplaceTempView("source")
    order = [*(each for each in SCHEMA.names if each not in partition), *partition]
    session.sql(f"INSERT INTO {name} SELECT {', '.join(order)} FROM source")
    table.oracle.upsert(changed)
    session.sql(f"DELETE FROM {name} WHERE id = 'k3'")
    table.oracle.delete([{**row, "ts": 1} for row in rows(range(3, 4), 1, "")])
    assert_all_agree(spark, table.path, table.expected())

    assert (table.path / PROPERTIES_PATH).read_bytes() == before
    table.table = hudi.open_table(str(table.path))
    assert table.table.adopt().completed
    table.upsert(rows(range(15, 22), 5, "ours again"))
    assert table.table.compact().completion
    assert_all_agree(spark, table.path, table.expected())
