"""Rows of DataFrames and streams through a running cluster: what is in the table, also when batches come again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headgate
from headgate_spark import typed_errors
from headgate_tables.errors import OptionError
from support.dev_cluster import dev_cluster
from support.spark_orders import COLUMNS, SCHEMA, rows, rows_in


@pytest.fixture(scope="module")
def cluster(state_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[headgate.Headgate, str, Path]]:
    del state_home
    with dev_cluster(tmp_path_factory.mktemp("cluster")) as (address, store), headgate.connect(address) as connection:
        yield connection, address, store


class Target:
    """A table of the cluster, and a writer's options for it."""

    def __init__(self, cluster: tuple[headgate.Headgate, str, Path], name: str) -> None:
        self.cluster, self.address, store = cluster
        self.name = name
        self.folder = store / name
        self.table = self.cluster.create_table(name, SCHEMA, key="id", ordering="at", partition_by="day", buckets=2)

    def options(self, **others: str) -> dict[str, str]:
        return {"connect": self.address, "channel": "job", **others}

    def found(self) -> list[dict[str, Any]]:
        return rows_in(self.folder)


@pytest.fixture
def target(cluster: tuple[headgate.Headgate, str, Path], request: pytest.FixtureRequest) -> Target:
    return Target(cluster, re.sub(r"\W", "_", request.node.name.removeprefix("test_"))[:60])


def test_rows_of_all_tasks_are_queryable_when_the_write_returns_and_deletes_go_by_key(spark: Any, target: Target) -> None:
    frame = spark.createDataFrame(rows(range(100)), COLUMNS).repartition(3)
    frame.write.format("headgate").options(**target.options()).mode("append").save(target.name)
    assert target.found() == rows(range(100))
    assert [channel.name for channel in target.table.channels()] == ["job:0", "job:1", "job:2"]
    newer = spark.createDataFrame([*rows(range(10), at=5), *rows(range(20, 30), at=0)], COLUMNS).coalesce(1)
    newer.write.format("headgate").options(**target.options(level="durable")).mode("append").save(target.name)
    target.table.channel("job:0").flush()
    assert target.found() == [*rows(range(10), at=5), *rows(range(10, 100))]
    gone = spark.createDataFrame(rows(range(5), at=9), COLUMNS).select("at", "day", "id")
    gone.write.format("headgate").options(**target.options(operation="delete")).mode("append").save(target.name)
    assert target.found() == [*rows(range(5, 10), at=5), *rows(range(10, 100))]


def test_a_table_is_read_by_its_name_in_the_cluster(spark: Any, target: Target) -> None:
    with target.table.channel("loader") as channel:
        channel.upsert(rows(range(30)))
    found = spark.read.format("headgate").option("connect", target.address).load(target.name).where("day = '2026-01-01'")
    assert sorted(each.id for each in found.collect()) == list(range(0, 30, 3))
    with pytest.raises(headgate.TableNotFoundError), typed_errors():
        spark.read.format("headgate").option("connect", target.address).load("nowhere")


def test_a_named_stream_goes_on_from_its_checkpoint(spark: Any, target: Target, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(raw))
    stream = stream.writeStream.format("headgate").options(**target.options())
    stream = stream.queryName("raw orders").option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    for number in range(3):
        pq.write_table(
            pa.Table.from_pylist(rows(range(number * 10, number * 10 + 20), at=number), SCHEMA), raw / f"{number}.parquet"
        )
        stream.start(target.name).awaitTermination()
    assert target.found() == [*rows(range(10), at=0), *rows(range(10, 20), at=1), *rows(range(20, 40), at=2)]
    offsets = {channel.name: channel.committed_offset for channel in target.table.channels()}
    assert [offset for name, offset in offsets.items() if name.startswith("job:batches:")] == [3]
    assert offsets["job:0"] == 60, "a batch was sent twice"


def test_a_batch_that_is_in_the_table_is_not_sent_again(spark: Any, target: Target, tmp_path: Path) -> None:
    """Spark dies before it notes that the batch is done: its checkpoint is the one of before."""
    raw, checkpoint = tmp_path / "raw", tmp_path / "c"
    raw.mkdir()
    pq.write_table(pa.Table.from_pylist(rows(range(20)), SCHEMA), raw / "0.parquet")

    def run(place: Path) -> None:
        stream = spark.readStream.schema(COLUMNS).parquet(str(raw)).writeStream.format("headgate").options(**target.options())
        stream.option("checkpointLocation", str(place)).trigger(availableNow=True).start(target.name).awaitTermination()

    def sent() -> int:
        return {channel.name: channel.committed_offset for channel in target.table.channels()}["job:0"]

    run(checkpoint)
    for name in ("0", ".0.crc"):
        (checkpoint / "commits" / name).unlink()
    run(checkpoint)
    assert sent() == 20
    run(tmp_path / "anew")
    assert sent() == 40, "another query's batch 0 was taken for this one's"
    assert target.found() == rows(range(20))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"connect": ""}, "connect"),
        ({"channel": ""}, "channel"),
        ({"operation": "merge"}, "operation='merge'"),
        ({"level": "soon"}, "level='soon'"),
        ({"timeout": "-1"}, "timeout='-1'"),
        ({"chanel": "x"}, "chanel"),
    ],
)
def test_options_that_are_wrong_are_named(spark: Any, target: Target, options: dict[str, str], said: str) -> None:
    writer = (
        spark.createDataFrame(rows([1]), COLUMNS).write.format("headgate").options(**target.options(**options)).mode("append")
    )
    with pytest.raises(OptionError, match=said), typed_errors():
        writer.save(target.name)
    assert target.found() == []


def test_an_overwrite_is_refused(spark: Any, target: Target) -> None:
    writer = spark.createDataFrame(rows([1]), COLUMNS).write.format("headgate").options(**target.options()).mode("overwrite")
    with pytest.raises(OptionError, match="not overwritten"), typed_errors():
        writer.save(target.name)


def test_an_error_of_the_cluster_arrives_as_what_it_was(spark: Any, target: Target) -> None:
    frame = spark.createDataFrame(rows([1]), COLUMNS)
    with pytest.raises(headgate.TableNotFoundError), typed_errors():
        frame.write.format("headgate").options(**target.options()).mode("append").save("nowhere")
    with pytest.raises(headgate.SchemaError, match="text"), typed_errors():
        frame.drop("at").write.format("headgate").options(**target.options()).mode("append").save(target.name)
