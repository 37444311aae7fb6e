"""What a killed writer of ours leaves inside a transaction: nothing that Spark or hudi-rs would show or stumble over."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate_tables import hudi
from support.oracle import Row
from support.readers import assert_all_agree
from support.spark_hudi import SparkTable
from support.tracked import Tracked

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int32())])
KILLED = """
import os, signal, sys
import pyarrow as pa
from headgate_tables import hudi

table = hudi.open_table(sys.argv[1])
transaction = table.transaction()
rows = pa.table({"id": ["k0", "k1", "new"], "part": ["a", "b", "fresh"], "ts": [99] * 3, "v": pa.array([-1] * 3, pa.int32())})
transaction.upsert(rows)
transaction.delete(rows.slice(1, 1))
os.kill(os.getpid(), signal.SIGKILL)
"""


def rows(numbers: range, ts: int) -> list[Row]:
    return [{"id": f"k{number}", "part": "ab"[number % 2], "ts": ts, "v": number * ts} for number in numbers]


def table_with_a_dead_transaction(tmp_path: Path) -> Tracked:
    table = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering="ts", buckets=2)
    table.upsert(rows(range(6), 1))
    table.upsert(rows(range(3, 9), 2))
    table.table.close()
    killed = subprocess.run([sys.executable, "-c", KILLED, str(table.path)], check=False, capture_output=True, text=True)
    assert killed.returncode == -9, killed.stderr
    pending = list((table.path / ".hoodie" / "timeline").glob("*.deltacommit.inflight"))
    assert len(pending) == 3
    return table


def test_a_killed_transaction_is_invisible_and_spark_writes_on(spark: Any, tmp_path: Path) -> None:
    table = table_with_a_dead_transaction(tmp_path)
    assert_all_agree(spark, table.path, table.expected())
    by_spark = SparkTable(
        spark, tmp_path, "t", partition=["part"], options={"hoodie.datasource.write.partitionpath.urlencode": "true"}
    )
    for ts in range(3, 7):
        changed = rows(range(ts, ts + 4), ts)
        by_spark.upsert(table.arrow(changed), hoodie_compact_inline="true", hoodie_compact_inline_max_delta_commits="2")
        table.oracle.upsert(changed)
        assert_all_agree(spark, table.path, table.expected())
    assert "rollback" in by_spark.actions()


def test_our_next_handle_sweeps_it_and_goes_on(spark: Any, tmp_path: Path) -> None:
    table = table_with_a_dead_transaction(tmp_path)
    table.table = hudi.open_table(str(table.path))
    table.upsert(rows(range(2), 3))
    table.delete(rows(range(2, 4), 4))
    assert table.table.verify().ok
    assert_all_agree(spark, table.path, table.expected())


def test_a_transaction_that_was_dropped_without_an_end_is_invisible(spark: Any, tmp_path: Path) -> None:
    table = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering="ts", buckets=2)
    table.upsert(rows(range(6), 1))
    transaction = table.table.transaction()
    transaction.upsert(table.arrow(rows(range(3, 9), 9)))
    assert_all_agree(spark, table.path, table.expected())
    del transaction
    table.table.close()
    table.table = hudi.open_table(str(table.path))
    table.upsert(rows(range(5, 7), 2))
    assert_all_agree(spark, table.path, table.expected())
