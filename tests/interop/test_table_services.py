"""Services beside writes, and then Spark's own services: hudi-rs, our reader and Spark agree row for row with a replay."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.replay import Entry
from support.served import PARTITIONS, Served
from support.spark_hudi import SparkTable

STORY = (
    "wwwbKc? wwbPcww? fwb? cC wKww? bbKcc? wSwwbPc? fwCA? wwKwCA? bPcbR? w wwKwA? bKCc? wwPwwA? f w?"
)
"""w: a write. b, c: a transaction is begun, the oldest one committed. K: compaction. P, f: planned, finished. C: cleaning.
A: archiving. S, R: savepoint, restore to it. ?: all readers are asked."""


def some_entries(choice: random.Random) -> list[Entry]:
    keys = [(partition, key) for partition in PARTITIONS for key in "uvwxyz"]
    return [
        Entry(key, choice.randint(1, 9), choice.choice([None, "red", "green", "blue"]))
        for key in choice.sample(keys, choice.randint(1, 6))
    ]


def spark_on(spark: Any, served: Served) -> SparkTable:
    """Spark as one more writer of the table."""
    options = {
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.bucket.index.num.buckets": "1",
    }
    ordering = "n" if served.replay.event_time else None
    return SparkTable(
        spark, served.path.parent, served.path.name, key="id", ordering=ordering, partition=["p"], options=options
    )


class Told:
    """Does the steps of a story."""

    def __init__(self, spark: Any, path: Path, *, event_time: bool) -> None:
        self.spark = spark
        self.choice = random.Random(5)  # noqa: S311 - the same story each time
        self.served = Served(path, event_time=event_time)
        self.seen = Counter[str]()

    def tell(self, steps: str) -> None:
        served = self.served
        does = {
            "w": lambda: served.write(*some_entries(self.choice)),
            "b": lambda: served.begin(*some_entries(self.choice)),
            "c": served.commit,
            "K": self.compact,
            "P": self.plan,
            "f": self.compact,
            "C": self.clean,
            "A": self.archive,
            "S": served.savepoint,
            "R": lambda: served.restore(min(served.saved)),
            "?": self.ask,
        }
        for step in steps.replace(" ", ""):
            does[step]()

    def plan(self) -> None:
        assert self.served.table.plan_compaction(forced=True)

    def compact(self) -> None:
        assert self.served.compact().completion
        self.served.assert_read_optimized()

    def clean(self) -> None:
        self.seen["cleaned"] += len(self.served.table.clean().files)

    def archive(self) -> None:
        self.seen["archived"] += len(self.served.table.archive().instants)

    def ask(self) -> None:
        served = self.served
        served.assert_shown(self.spark)
        served.assert_read_optimized(self.spark)
        points, ranges = served.points(), served.ranges()
        served.assert_past(self.spark, chosen := self.choice.sample(points, min(2, len(points))))
        served.assert_changed(self.spark, chosen_ranges := self.choice.sample(ranges, min(3, len(ranges))))
        self.seen["points"] += len(chosen)
        self.seen["ranges"] += len(chosen_ranges)


@pytest.mark.parametrize("event_time", [True, False], ids=["event time", "commit time"])
def test_all_agree_beside_every_service_then_spark_serves_the_table_and_we_go_on(
    spark: Any, tmp_path: Path, event_time: bool
) -> None:
    told = Told(spark, tmp_path / "t", event_time=event_time)
    served = told.served
    told.tell(STORY)
    assert told.seen >= Counter(points=8, ranges=20, cleaned=10, archived=10), told.seen
    served.table.close()

    by_spark = spark_on(spark, served)
    compactions = len(served.replay.compactions)
    by_spark.call("run_compaction", op="schedule")
    by_spark.run_scheduled_compactions()
    served.take_in()
    assert len(served.replay.compactions) == compactions + 1
    served.assert_shown(spark)
    served.assert_read_optimized(spark)
    before = sum(1 for _ in served.path.rglob("*.parquet"))
    by_spark.call("run_clean", retain_commits=1)
    assert sum(1 for _ in served.path.rglob("*.parquet")) < before
    served.assert_shown(spark)
    served.assert_read_optimized(spark)

    served.adopt()
    told.tell("w? wbKc? wPwwCA? f w?")
    assert served.table.verify().ok, served.table.verify().findings
