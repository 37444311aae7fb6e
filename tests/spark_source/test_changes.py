"""`spark.readStream.format("headgate")` on real PySpark 4: each commit's rows once, from a start point, over restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_spark import typed_errors
from headgate_tables import hudi
from headgate_tables.errors import OptionError, RangeGoneError
from headgate_tables.face.altering import Alteration
from support.bulk_rows import SCHEMA, new_table, row

KEYS = ("id", "part", "ts")


def upsert(url: str, *numbers: int, ts: int = 0) -> None:
    with hudi.open_table(url) as table:
        table.upsert(pa.Table.from_pylist([{**row(n), "ts": ts + n} for n in numbers], schema=SCHEMA))


def delete(url: str, number: int, ts: int) -> None:
    gone = {**row(number), "ts": ts}
    with hudi.open_table(url) as table:
        table.delete(pa.table({name: pa.array([gone[name]], SCHEMA.field(name).type) for name in KEYS}))


class Batches:
    """What a query handed over, batch by batch: the keys and ordering values of each."""

    def __init__(self, spark: Any, url: str, folder: Path, **options: Any) -> None:
        self.seen: list[list[tuple[str, int]]] = []
        self._stream = spark.readStream.format("headgate").options(columns="id, ts", **options)
        self._url = url
        self._checkpoint = str(folder)

    def drain(self) -> list[list[tuple[str, int]]]:
        """Runs until all that is there now has been read; the batches of this run."""
        self.seen = []
        query = self._begin(availableNow=True)
        query.awaitTermination()
        return self.seen

    def _begin(self, **trigger: Any) -> Any:
        writer = self._stream.load(self._url).writeStream.foreachBatch(self._take)
        return writer.option("checkpointLocation", self._checkpoint).trigger(**trigger).start()

    def _take(self, frame: Any, _: int) -> None:
        if found := sorted((each.id, each.ts) for each in frame.collect()):
            self.seen.append(found)


def keys(*numbers: int, ts: int = 0) -> list[tuple[str, int]]:
    return sorted((row(n)["id"], ts + n) for n in numbers)


def test_the_table_comes_first_and_then_each_commit(spark: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    upsert(url, 0, 1, 2)
    upsert(url, 1, ts=100)
    stream = Batches(spark, url, tmp_path / "checkpoint", maxCommitsPerTrigger=1)
    assert stream.drain() == [sorted(keys(0, 2) + keys(1, ts=100))]
    assert stream.drain() == []
    for number in (3, 4, 5):
        upsert(url, number)
    upsert(url, 0, ts=200)
    delete(url, 2, 9000)
    with hudi.open_table(url) as table:
        table.compact()
    assert stream.drain() == [keys(3), keys(4), keys(5), keys(0, ts=200)]
    assert stream.drain() == []


def test_without_a_limit_a_batch_has_each_row_once_as_the_last_commit_left_it(spark: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    stream = Batches(spark, url, tmp_path / "checkpoint")
    assert stream.drain() == []
    upsert(url, 0)
    assert stream.drain() == [keys(0)]
    for step in range(3):
        upsert(url, 7, ts=step * 10)
    delete(url, 0, 9000)
    assert stream.drain() == [keys(7, ts=20)]


def test_a_stream_begins_at_the_newest_commit_or_behind_a_moment(spark: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    upsert(url, 0)
    upsert(url, 1)
    with hudi.open_table(url) as table:
        first, _ = table.commits()
    newest = Batches(spark, url, tmp_path / "newest", startingFrom="latest")
    moment = Batches(spark, url, tmp_path / "moment", startingFrom=first.completion)
    assert (newest.drain(), moment.drain()) == ([], [keys(1)])
    upsert(url, 2)
    assert (newest.drain(), moment.drain()) == ([keys(2)], [keys(2)])


def test_a_batch_that_failed_is_read_again_as_it_was(spark: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    upsert(url, 0)
    stream = Batches(spark, url, tmp_path / "checkpoint")
    assert stream.drain() == [keys(0)]
    upsert(url, 1)
    take, stream._take = stream._take, _fail  # type: ignore[method-assign]
    with pytest.raises(Exception, match="the sink is full"):
        stream.drain()
    upsert(url, 2)
    stream._take = take  # type: ignore[method-assign]
    assert stream.drain() == [keys(1), keys(2)]


def _fail(frame: Any, _: int) -> None:
    raise OSError("the sink is full")


def test_a_running_query_reads_commits_as_they_come(spark: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    upsert(url, 0)
    stream = Batches(spark, url, tmp_path / "checkpoint")
    query = stream._begin(processingTime="100 milliseconds")
    try:
        for number in range(1, 4):
            query.processAllAvailable()
            assert stream.seen[-1] == keys(number - 1)
            upsert(url, number)
        query.processAllAvailable()
    finally:
        query.stop()
    assert stream.seen == [keys(0), keys(1), keys(2), keys(3)]


def test_cleaning_stops_only_a_stream_that_wants_a_commit_of_before(spark: Any, tmp_path: Path) -> None:
    """A batch of all commits reads the newest files, and one of the first of them reads older ones."""
    url = new_table(tmp_path / "t")
    upsert(url, 0)
    behind = Batches(spark, url, tmp_path / "behind", maxCommitsPerTrigger=1)
    all_at_once = Batches(spark, url, tmp_path / "all")
    assert behind.drain() == all_at_once.drain() == [keys(0)]
    with hudi.open_table(url) as table:
        table.configure({"hoodie.clean.commits.retained": "1", "headgate.clean.min.age": "0"})
    for number in range(4):
        upsert(url, 0, 1, 2, ts=10 * number)
        with hudi.open_table(url) as table:
            table.compact()
            table.clean()
    assert all_at_once.drain() == [keys(0, 1, 2, ts=30)]
    with pytest.raises(RangeGoneError, match="the oldest point that can be read is"), typed_errors():
        behind.drain()


@pytest.mark.parametrize("options", [{"asOf": "2026-01-01"}, {"since": "2026-01-01"}, {"mode": "read_optimized"}])
def test_options_of_a_read_are_refused(spark: Any, tmp_path: Path, options: dict[str, str]) -> None:
    stream = Batches(spark, new_table(tmp_path / "t"), tmp_path / "checkpoint", **options)
    with pytest.raises(OptionError, match="a stream has no asOf, since or mode"), typed_errors():
        stream.drain()


def test_a_running_stream_goes_on_with_its_columns_and_types_after_the_table_was_altered(spark: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    upsert(url, 1)
    stream = spark.readStream.format("headgate").load(url).writeStream.format("memory").queryName("altered")
    query = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        query.processAllAvailable()
        with hudi.open_table(url) as table:
            table.alter(Alteration(add={"gate": pa.string()}, widen={"v": pa.int64()}))
            table.upsert(pa.Table.from_pylist([{**row(2), "gate": "A1"}], schema=table.schema))
        query.processAllAvailable()
    finally:
        query.stop()
    found = spark.table("altered")
    assert (found.columns, dict(found.dtypes)["v"]) == (SCHEMA.names, "int")
    assert sorted((each.id, each.v) for each in found.collect()) == sorted((row(n)["id"], n) for n in (1, 2))
