"""Rows of DataFrames and streams into a table by its address: one commit each, also when tasks fail and batches come again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from headgate_spark import typed_errors
from headgate_spark.direct_sink import MOST_BYTES
from headgate_tables import hudi
from headgate_tables.errors import OptionError, SchemaError
from headgate_tables.opening import open_table
from support.spark_orders import COLUMNS, SCHEMA, rows, rows_in


class Target:
    """A table, and what is in it."""

    def __init__(self, folder: Path) -> None:
        self.url = str(folder)
        hudi.create_table(self.url, SCHEMA, record_key="id", ordering="at", partition_by=["day"], buckets=2).close()
        self._timeline = folder / ".hoodie" / "timeline"

    def found(self) -> list[dict[str, Any]]:
        return rows_in(Path(self.url))

    def commits(self) -> int:
        return len(list(self._timeline.glob("*_*.deltacommit")))

    def files(self) -> int:
        return len([each for each in Path(self.url).glob("2026-*/*") if each.name != ".hoodie_partition_metadata"])


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(tmp_path / "orders")


def test_rows_of_all_tasks_are_one_commit_and_deletes_go_by_key(spark: Any, target: Target) -> None:
    frame = spark.createDataFrame(rows(range(100)), COLUMNS).repartition(3)
    frame.write.format("headgate").mode("append").save(target.url)
    assert target.found() == rows(range(100))
    assert target.commits() == 1
    newer = spark.createDataFrame([*rows(range(10), at=5), *rows(range(20, 30), at=0)], COLUMNS).repartition(2)
    newer.write.format("headgate").mode("append").save(target.url)
    gone = spark.createDataFrame(rows(range(5), at=9), COLUMNS).select("at", "day", "id")
    gone.write.format("headgate").option("operation", "delete").mode("append").save(target.url)
    assert target.found() == [*rows(range(5, 10), at=5), *rows(range(10, 100))]
    assert target.commits() == 3


def test_a_named_stream_goes_on_from_its_checkpoint_with_a_commit_for_each_batch(
    spark: Any, target: Target, tmp_path: Path
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(raw)).writeStream.format("headgate")
    stream = stream.queryName("raw orders").option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    for number in range(3):
        pq.write_table(
            pa.Table.from_pylist(rows(range(number * 10, number * 10 + 20), at=number), SCHEMA), raw / f"{number}.parquet"
        )
        stream.start(target.url).awaitTermination()
        assert target.commits() == number + 1
    assert target.found() == [*rows(range(10), at=0), *rows(range(10, 20), at=1), *rows(range(20, 40), at=2)]


def test_a_batch_that_is_in_the_table_is_not_written_again(spark: Any, target: Target, tmp_path: Path) -> None:
    """Spark dies before it notes that the batch is done: its checkpoint is the one of before."""
    raw, checkpoint = tmp_path / "raw", tmp_path / "c"
    raw.mkdir()
    pq.write_table(pa.Table.from_pylist(rows(range(20)), SCHEMA), raw / "0.parquet")

    def run(place: Path) -> None:
        stream = spark.readStream.schema(COLUMNS).parquet(str(raw)).writeStream.format("headgate")
        stream.option("checkpointLocation", str(place)).trigger(availableNow=True).start(target.url).awaitTermination()

    run(checkpoint)
    for name in ("0", ".0.crc"):
        (checkpoint / "commits" / name).unlink()
    run(checkpoint)
    assert target.commits() == 1
    run(tmp_path / "anew")
    assert target.commits() == 2, "another query's batch 0 was taken for this one's"
    assert target.found() == rows(range(20))


def test_a_task_that_fails_leaves_nothing(spark: Any, target: Target) -> None:
    frame = spark.createDataFrame(rows(range(40)), COLUMNS).repartition(4)
    with pytest.raises(PySparkException, match="row 7"):
        frame.selectExpr("id", "day", "at", "if(id = 7, raise_error('row 7'), text) as text").write.format("headgate").mode(
            "append"
        ).save(target.url)
    assert (target.commits(), target.files()) == (0, 0)
    frame.write.format("headgate").mode("append").save(target.url)
    assert target.found() == rows(range(40))


@pytest.mark.parametrize("tasks", [1, 3])
def test_more_rows_than_pass_through_a_driver_are_refused(spark: Any, target: Target, tasks: int) -> None:
    with pytest.raises(OptionError, match="more than 128 MiB"), typed_errors():
        mebibytes(spark, (MOST_BYTES >> 20) + 1, tasks).write.format("headgate").mode("append").save(target.url)
    assert (target.commits(), target.files()) == (0, 0)


@pytest.mark.parametrize("tasks", [1, 40])
def test_as_many_rows_as_pass_through_a_driver_of_1_gib_are_written(spark: Any, target: Target, tasks: int) -> None:
    assert spark.conf.get("spark.driver.memory") == "1g"
    mebibytes(spark, count := (MOST_BYTES >> 20) - 2, tasks).write.format("headgate").mode("append").save(target.url)
    assert [(row["id"], len(row["text"])) for row in target.found()] == [(n, 1 << 20) for n in range(count)]


def mebibytes(spark: Any, count: int, tasks: int) -> Any:
    """A frame of so many rows of 1 MiB each."""
    text = f"repeat('x', {1 << 20}) as text"
    return spark.range(0, count, 1, tasks).selectExpr("id", "'2026-01-01' as day", "id as at", text)


def test_a_write_without_rows_takes_the_table_from_nobody(spark: Any, target: Target) -> None:
    with open_table(target.url) as owner:
        owner.own()
        spark.createDataFrame([], COLUMNS).write.format("headgate").mode("append").save(target.url)
        owner.check_owner()
    assert (target.commits(), target.files()) == (0, 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"channel": "job"}, "channel: for rows that go through a cluster"),
        ({"level": "durable", "timeout": "9"}, "level and timeout: for rows that go through a cluster"),
        ({"operation": "merge"}, "operation='merge'"),
        ({"operaton": "delete"}, "operaton"),
    ],
)
def test_options_that_are_wrong_are_named(spark: Any, target: Target, options: dict[str, str], said: str) -> None:
    writer = spark.createDataFrame(rows([1]), COLUMNS).write.format("headgate").options(**options).mode("append")
    with pytest.raises(OptionError, match=said), typed_errors():
        writer.save(target.url)
    assert target.commits() == 0


def test_errors_of_the_table_arrive_as_what_they_are(spark: Any, target: Target) -> None:
    frame = spark.createDataFrame(rows([1]), COLUMNS)
    with pytest.raises(SchemaError, match="text"), typed_errors():
        frame.drop("text").write.format("headgate").mode("append").save(target.url)
    with pytest.raises(OptionError, match="not overwritten"), typed_errors():
        frame.write.format("headgate").mode("overwrite").save(target.url)
    assert target.commits() == 0
