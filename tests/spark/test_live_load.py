"""Upserts and deletes by real Spark into a table that is in use: what readers see, and what failed tasks and drivers leave."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_spark import bulk_insert, delete, loading, planning, upsert
from headgate_spark.planning import setup_of
from headgate_tables import hudi
from headgate_tables.errors import NullKeyError, OptionError, SchemaError
from headgate_tables.face.writing import ReadBy
from support import spark_faults
from support.bulk_rows import ROWS, SCHEMA, committed, leftovers, new_table, row, write
from support.oracle import Oracle, Row
from support.readers import assert_all_agree, read_by_us
from support.same_rows import assert_same_rows
from support.spark_hudi import SparkTable

CHANGES: list[Row] = [{**ROWS[number], "ts": (number % 2) * 10_000, "v": -number} for number in range(0, 300, 3)]
"""Every second is older than what the table has."""
NEW: list[Row] = [{**row(number), "id": f"new{number}", "ts": number} for number in range(40)]
GONE: list[Row] = [{**ROWS[number], "ts": 20_000 if number % 2 else 0} for number in range(0, 400, 5)]
QUERY = ("query", 7)


def oracle_of(upserts: list[list[Row]], deletes: list[Row] | None = None) -> pa.Table:
    oracle = Oracle(["id"], ["part"], "ts")
    for rows in upserts:
        oracle.upsert(rows)
    oracle.delete(deletes or [])
    return pa.Table.from_pylist(oracle.rows(), schema=SCHEMA)


def instants(url: str) -> list[str]:
    with hudi.open_table(url) as table:
        return [commit.instant for commit in table.commits()]


@pytest.fixture
def url(tmp_path: Path) -> str:
    made = new_table(tmp_path / "t")
    with hudi.open_table(made) as table:
        table.upsert(pa.Table.from_pylist(ROWS, schema=SCHEMA))
    return made


@pytest.fixture
def source(tmp_path: Path) -> str:
    return write(tmp_path / "changes.parquet", [*CHANGES, *NEW])


def test_changes_and_deletes_are_read_alike_by_all_and_hudi_goes_on(spark: Any, tmp_path: Path, url: str, source: str) -> None:
    done = upsert(spark.read.parquet(source), url, tasks=3)
    assert (done.upserted, done.deleted, done.replaced) == (oracle_of([CHANGES, NEW]).num_rows, 0, 0)
    assert_all_agree(spark, tmp_path / "t", oracle_of([ROWS, CHANGES, NEW]))
    keys = spark.read.parquet(write(tmp_path / "gone.parquet", GONE)).select("ts", "part", "id")
    gone = delete(keys, url, tasks=2)
    assert (gone.upserted, gone.deleted) == (0, len({(each["part"], each["id"]) for each in GONE}))
    expected = oracle_of([ROWS, CHANGES, NEW], GONE)
    assert_all_agree(spark, tmp_path / "t", expected)
    with hudi.open_table(url) as table:
        assert not table.verify().findings
        table.compact()
    assert_all_agree(spark, tmp_path / "t", expected)
    upsert(spark.read.parquet(write(tmp_path / "more.parquet", LATE)), url, tasks=2)
    options = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
    by_spark = SparkTable(spark, tmp_path, "t", ordering="ts", partition=["part"], options=options)
    by_spark.call("run_compaction", op="schedule")
    by_spark.run_scheduled_compactions()
    after = Oracle(["id"], ["part"], "ts")
    after.upsert([*ROWS, *CHANGES, *NEW])
    after.delete(GONE)
    after.upsert(LATE)
    rows = pa.Table.from_pylist(after.rows(), schema=SCHEMA)
    assert_all_agree(spark, tmp_path / "t", rows, schema_by_spark=True)


LATE: list[Row] = [{**row(number), "ts": 30_000} for number in range(100)]


def test_of_a_table_without_ordering_the_later_commit_wins(spark: Any, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    hudi.create_table(str(tmp_path / "t"), schema, record_key="id", buckets=2).close()
    for version in (1, 2):
        frame = spark.createDataFrame([(n, version) for n in range(version, 50)], "id long, v long")
        upsert(frame, str(tmp_path / "t"), tasks=2)
    delete(spark.createDataFrame([(7,), (8,)], "id long"), str(tmp_path / "t"), tasks=1)
    expected = [{"id": n, "v": 1 if n == 1 else 2} for n in range(1, 50) if n not in (7, 8)]
    assert_all_agree(spark, tmp_path / "t", pa.Table.from_pylist(expected, schema=schema))


@pytest.mark.parametrize("fault", [spark_faults.FailsOnce, spark_faults.DiesOnce, spark_faults.RunsTwice])
@pytest.mark.parametrize(("load", "tasks"), [(upsert, 2), (delete, 2), (upsert, 1)])
def test_a_task_that_runs_again_changes_nothing(
    spark: Any, tmp_path: Path, url: str, source: str, monkeypatch: pytest.MonkeyPatch, fault: type, load: Any, tasks: int
) -> None:
    monkeypatch.setattr(loading, "Writing", fault)
    done = load(spark.read.parquet(source), url, tasks=tasks)
    changed = oracle_of([ROWS, CHANGES, NEW]) if load is upsert else oracle_of([ROWS], [*CHANGES, *NEW])
    assert_all_agree(spark, tmp_path / "t", changed)
    with hudi.open_table(url) as table:
        assert not table.verify().findings
    data = [path for path in (tmp_path / "t").rglob("*") if done.instant in path.name and ".hoodie" not in path.parts]
    assert len(data) == done.files, "each run of a task wrote files of its own"
    assert [name for name in leftovers(tmp_path / "t", done.instant) if name not in committed(tmp_path / "t")] == []


@pytest.mark.parametrize("files", [1, 3])
def test_a_small_batch_is_written_by_one_task_in_one_stage(spark: Any, tmp_path: Path, url: str, files: int) -> None:
    """A stage with a shuffle before it takes as long as all else."""
    parts = [[*CHANGES, *NEW][at::files] for at in range(files)]
    frame = spark.read.parquet(*[write(tmp_path / f"part-{at}.parquet", part) for at, part in enumerate(parts)])
    spark.sparkContext.setJobGroup(group := f"small {files}", "a small batch")
    upsert(frame, url)
    assert tasks_of_stages(spark, group) == [1]
    assert_same_rows(read_by_us(tmp_path / "t"), oracle_of([ROWS, CHANGES, NEW]), "our reader")


def tasks_of_stages(spark: Any, group: str) -> list[int]:
    tracker = spark.sparkContext.statusTracker()
    stages = {stage for job in tracker.getJobIdsForGroup(group) for stage in tracker.getJobInfo(job).stageIds}
    return [tracker.getStageInfo(stage).numTasks for stage in sorted(stages)]


@pytest.mark.parametrize("read_by", ["arrow", "spark"])
def test_one_task_that_writes_more_than_4_mib_gets_them_from_others(
    spark: Any, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, read_by: ReadBy
) -> None:
    monkeypatch.setattr(planning, "_ONE_TASK_BYTES", 0)
    frame = spark.read.parquet(*[write(tmp_path / f"{at}.parquet", rows) for at, rows in enumerate((CHANGES, NEW))])
    spark.sparkContext.setJobGroup(group := f"one that writes, {read_by}", "")
    bulk_insert(frame, new_table(tmp_path / "new"), tasks=1, read_by=read_by)
    stages = tasks_of_stages(spark, group)
    assert (len(stages) > 1, stages[-1]) == (True, 1)
    assert_same_rows(read_by_us(tmp_path / "new"), oracle_of([CHANGES, NEW]), "our reader")


def test_more_than_4_mib_are_written_by_as_many_tasks_as_spark_usually_has(spark: Any, tmp_path: Path, url: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "7")
    for megabytes, tasks in ((2, 1), (5, 7)):
        blob = random.Random(1).randbytes(megabytes << 20).decode("latin-1")
        rows = [{**row(number), "id": f"{number}{blob[number::1000]}"} for number in range(1000)]
        frame = session.read.parquet(write(tmp_path / f"{megabytes}.parquet", rows))
        with hudi.open_table(url) as table:
            assert setup_of(frame, table, "upsert", tasks=None, storage_options=None).tasks == tasks


def test_errors_of_calls_and_tasks_are_typed_and_nothing_is_visible(spark: Any, tmp_path: Path, url: str, source: str) -> None:
    bad = write(tmp_path / "bad.parquet", [*CHANGES, {**ROWS[0], "id": None}])
    with pytest.raises(NullKeyError, match="'id' is null or empty in 1"):
        upsert(spark.read.parquet(bad), url, tasks=2)
    with pytest.raises(NullKeyError):
        delete(spark.read.parquet(bad), url, tasks=2)
    with pytest.raises(SchemaError, match="v"):
        upsert(spark.read.parquet(source).drop("v"), url)
    with pytest.raises(SchemaError, match="ts"):
        delete(spark.read.parquet(source).drop("ts"), url)
    for batch in (("", 1), ("a\nb", 1), ("q" * 201, 1), ("q", -1)):
        with pytest.raises(OptionError, match="batch="):
            upsert(spark.read.parquet(source), url, batch=batch)
    assert_same_rows(read_by_us(tmp_path / "t"), oracle_of([ROWS]), "our reader")
    assert len(instants(url)) == 1


def test_a_batch_of_a_query_is_in_the_table_once(spark: Any, tmp_path: Path, url: str, source: str) -> None:
    first = upsert(spark.read.parquet(source), url, tasks=2, batch=QUERY)
    assert first.completion
    with hudi.open_table(url) as table:
        for batch in (QUERY, ("query", 6), ("query", 0)):
            again = upsert(spark.read.parquet(source), table, tasks=2, batch=batch)
            assert (again.completion, again.files) == ("", 0)
        assert upsert(spark.read.parquet(source), table, tasks=2, batch=("other", 0)).completion
        empty = spark.read.parquet(source).where("id = 'nobody'")
        assert upsert(empty, table, tasks=2, batch=("query", 8)).completion == ""
    assert len(instants(url)) == 3, "a batch without rows is no commit"
    assert upsert(spark.read.parquet(source), url, tasks=2, batch=("query", 8)).completion == "", "but it is done"
    assert upsert(spark.read.parquet(source), url, tasks=2, batch=("query", 9)).completion
    assert_all_agree(spark, tmp_path / "t", oracle_of([ROWS, CHANGES, NEW]))


@pytest.mark.parametrize("step", spark_faults.STEPS)
def test_a_driver_that_is_killed_blocks_nobody_and_its_batch_is_in_the_table_once(
    spark: Any, tmp_path: Path, url: str, source: str, step: str
) -> None:
    driver = subprocess.run(
        [sys.executable, "-m", "support.spark_faults", step, url, source, "upsert"], check=False, capture_output=True, text=True
    )
    assert driver.returncode == -9, driver.stderr
    with hudi.open_table(url) as meanwhile:  # somebody who takes no notice of the query
        meanwhile.upsert(pa.Table.from_pylist(LATE, schema=SCHEMA))
    again = upsert(spark.read.parquet(source), url, tasks=2, batch=QUERY)
    assert (again.completion == "") == (step == "slot won")
    assert len(instants(url)) == 3
    assert_all_agree(spark, tmp_path / "t", oracle_of([ROWS, CHANGES, NEW, LATE]))
    with hudi.open_table(url) as table:
        assert not table.verify().findings


def test_a_stream_is_exactly_once_over_restarts(spark: Any, tmp_path: Path, url: str) -> None:
    """The query dies behind the commit of a batch, before Spark notes that: Spark sends the batch again."""
    raw = tmp_path / "raw"
    raw.mkdir()
    batches = [[{**row(number), "ts": 40_000 + at, "v": at} for number in range(at, at + 50)] for at in range(3)]
    seen: list[tuple[int, bool]] = []

    def send(df: Any, number: int) -> None:
        done = upsert(df, url, tasks=2, batch=("stream", number))
        seen.append((number, bool(done.completion)))
        if number == 1 and done.completion:
            raise RuntimeError("the query dies")

    for at, rows in enumerate(batches):
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), raw / f"{at}.parquet")
    source = spark.readStream.schema(spark.read.parquet(str(raw)).schema).option("maxFilesPerTrigger", 1).parquet(str(raw))
    stream = source.writeStream.foreachBatch(send).option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    with pytest.raises(Exception, match="the query dies"):
        stream.start().awaitTermination()
    stream.start().awaitTermination()
    assert seen == [(0, True), (1, True), (1, False), (2, True)]
    assert_same_rows(read_by_us(tmp_path / "t"), oracle_of([ROWS, *batches]), "our reader")
