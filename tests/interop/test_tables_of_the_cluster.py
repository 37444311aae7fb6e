"""What the cluster writes (log files of several writers, checkpoints, a killed writer in between), read and compacted by real
Hudi."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.readers import assert_all_agree
from support.spark_hudi import SparkTable

TABLES = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster")
    environment = os.environ | {"PYTHONPATH": str(TABLES)}
    command = [os.environ["HEADGATE_CLUSTER_PYTHON"], "-m", "support.cluster_tables", str(folder)]
    subprocess.run(command, check=True, env=environment, timeout=300)
    return folder


def expected(folder: Path, name: str) -> pa.Table:
    return pq.read_table(folder / f"{name}.parquet")


@pytest.mark.parametrize(("name", "ordering"), [("by_event_time", "ts"), ("by_commit_time", None)])
def test_spark_hudi_rs_and_we_read_the_same_before_and_after_spark_compacts_it(
    spark: Any, written: Path, name: str, ordering: str | None
) -> None:
    store = written / "cluster" / "store"
    assert_all_agree(spark, store / name, expected(written, name))
    settings = {"hoodie.datasource.write.partitionpath.urlencode": "true", "hoodie.bucket.index.num.buckets": "2"}
    table = SparkTable(spark, store, name, ordering=ordering, partition=["part"], options=settings)
    assert table.actions().count("deltacommit") >= 5
    table.call("run_compaction", op="schedule")
    table.run_scheduled_compactions()
    assert "commit" in table.actions()
    assert_all_agree(spark, store / name, expected(written, name))
