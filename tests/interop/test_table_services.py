"""Services beside writes, and then Spark's own services: hudi-rs, our reader and Spark agree row for row with a replay."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headgate_tables.system import System
from support.replay import Entry
from support.served import PARTITIONS, Served, arrow_of
from support.spark_hudi import SparkTable
from support.systems import SetClock, system

STORY = "wwwbKc? wwbPcww? fwb? cC wKww? bbKcc? wSwwbPc? fwCA? wwKwCA? bPcbR? w wwKwA? bKCc? wwPwwA? f w?"
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
    return SparkTable(spark, served.path.parent, served.path.name, key="id", ordering=ordering, partition=["p"], options=options)


class Told:
    """Does the steps of a story."""

    def __init__(self, spark: Any, path: Path, *, event_time: bool) -> None:
        self.spark = spark
        self.choice = random.Random(5)
        self.served = Served(path, event_time=event_time)
        self.seen = Counter[str]()

    def tell(self, steps: str) -> None:
        served = self.served
        does = {
            "w": lambda: served.write(*some_entries(self.choice)),
            "b": lambda: served.begin(*some_entries(self.choice)),
            "c": served.commit,
            "K": self.compact,
            "P": served.plan,
            "f": self.compact,
            "C": self.clean,
            "A": self.archive,
            "S": served.savepoint,
            "R": lambda: served.restore(min(served.saved)),
            "?": self.ask,
        }
        for step in steps.replace(" ", ""):
            does[step]()

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


def row(partition: str, key: str, ordering: int, value: str | None) -> Entry:
    """With ``value`` None a delete."""
    return Entry((partition, key), ordering, value)


def ask_everything(served: Served, spark: Any) -> None:
    served.assert_shown(spark)
    served.assert_read_optimized(spark)
    served.assert_past(spark, served.points()[-1:])
    served.assert_changed(spark, served.ranges()[-2:])


def served_with_a_slice_of_logs_alone(path: Path) -> Served:
    """Partitions a and b have base files, c does not; all have logs."""
    served = Served(path, event_time=True)
    served.begin(row("a", "u", 3, "three"), row("b", "u", 3, "three"))
    served.begin(row("c", "u", 3, "three"), row("c", "w", 3, "three"), row("b", "w", 1, "late"))
    served.commit()
    served.commit()
    served.write(row("a", "w", 4, None), row("b", "w", 4, None), row("c", "w", 4, None), row("c", "x", 1, "four"))
    return served


@pytest.mark.parametrize("next_by", ["us", "Spark"])
@pytest.mark.parametrize("dropped", ["b", "c"], ids=["with a base file", "of logs alone"])
def test_a_slice_that_a_plan_dropped_is_read_right_before_and_after_its_next_compaction(
    spark: Any, tmp_path: Path, dropped: str, next_by: str
) -> None:
    served = served_with_a_slice_of_logs_alone(tmp_path / "t")
    plan = served.plan()
    assert {each.partition for each in plan.operations} == {"a", "b", "c"}
    served.write(row("a", "x", 1, "beside"), row("b", "u", 2, "late"), row("b", "w", 5, "beside"), row("c", "w", 3, "late"))
    ask_everything(served, spark)
    served.finish(plan, drop=dropped)
    ask_everything(served, spark)
    served.write(*(row(part, key, 9, f"{part} later") for part in "abc" for key in "uy"), row("b", "w", 9, None))
    ask_everything(served, spark)
    if next_by == "us":
        again = served.plan()
        assert dropped in {each.partition for each in again.operations}
        served.write(row("a", "z", 1, "z"), row("b", "z", 1, "z"), row("c", "z", 1, "z"))
        ask_everything(served, spark)
        served.finish(again)
    else:
        by_spark = spark_on(spark, served)
        by_spark.call("run_compaction", op="schedule")
        by_spark.run_scheduled_compactions()
        served.take_in()
        assert dropped in served.replay.compactions[-1].partitions
        served.adopt()
    ask_everything(served, spark)
    served.write(*(row(part, key, 1, "late") for part in "abc" for key in "uwv"))
    ask_everything(served, spark)
    assert served.compact().completion
    ask_everything(served, spark)


def test_what_a_compactor_makes_after_its_operation_was_dropped_harms_no_reader(spark: Any, tmp_path: Path) -> None:
    served = served_with_a_slice_of_logs_alone(tmp_path / "t")
    plan = served.plan()
    late = next(each for each in plan.operations if each.partition == "b")
    served.finish(plan, drop="b")
    served.write(row("b", "u", 9, "later"))
    served.run(late, plan)
    assert (served.path / late.path).exists()
    served.assert_shown(spark)
    served.reopen()
    served.table.own()
    served.table.tidy()
    assert not (served.path / late.path).exists()
    ask_everything(served, spark)


def test_a_cancelled_plan_leaves_nothing_behind_and_spark_reads_and_writes_on(spark: Any, tmp_path: Path) -> None:
    served = served_with_a_slice_of_logs_alone(tmp_path / "t")
    plan = served.plan()
    served.write(row("a", "u", 5, "beside"), row("c", "u", 5, "beside"))
    served.run(plan.operations[0], plan)
    assert files_of(served.path, plan.instant)
    served.table.cancel_plan(plan.instant)
    served.table.tidy()
    assert files_of(served.path, plan.instant) == []
    ask_everything(served, spark)
    served.table.close()
    changed = [row("a", "u", 6, "Spark's"), row("b", "new", 1, "Spark's"), row("c", "w", 5, "Spark's")]
    spark_on(spark, served).upsert(arrow_of(changed))
    served.take_in(changed)
    ask_everything(served, spark)
    served.adopt()
    assert not served.table.plans
    assert served.compact().completion
    ask_everything(served, spark)


def files_of(path: Path, instant: str) -> list[Path]:
    """What has the instant in its name."""
    return [file for file in path.rglob(f"*{instant}*") if ".headgate" not in file.parts]


@pytest.mark.parametrize("set_back", [0, 3_000])
@pytest.mark.parametrize("event_time", [True, False], ids=["event time", "commit time"])
def test_a_commit_that_was_requested_before_a_compaction_and_completed_after_it_loses_nothing(
    spark: Any, tmp_path: Path, event_time: bool, set_back: int
) -> None:
    clock = SetClock(System.real().clock.now_ms() - 60_000)
    served = Served(tmp_path / "t", event_time=event_time, system=system(clock))
    served.write(row("a", "u", 5, "logged"), row("a", "w", 5, None), row("b", "u", 5, "logged"))
    straddling = served.begin(
        row("a", "u", 5, "open"), row("a", "w", 5, "open"), row("a", "new", 1, "open"), row("b", "u", 4, None)
    )
    plan = served.plan()
    clock.now -= set_back
    served.commit()
    assert straddling.instant < plan.instant < served.replay.commits[-1].completion
    ask_everything(served, spark)
    served.write(row("a", "w", 4, "behind"), row("b", "w", 5, "behind"))
    ask_everything(served, spark)
    served.finish(plan)
    ask_everything(served, spark)
    served.write(row("a", "u", 5, "last"))
    ask_everything(served, spark)
    assert served.compact().completion
    ask_everything(served, spark)


def test_spark_misses_a_commit_in_a_range_that_ends_with_it_while_a_younger_compaction_is_open(
    spark: Any, tmp_path: Path
) -> None:
    """A defect of Hudi 1.2: who reads on from there never sees those rows. ``Served.spark_misses_rows`` can go when it does."""
    served = Served(tmp_path / "t", event_time=True)
    served.write(row("a", "u", 5, "logged"))
    since = served.replay.commits[-1].completion
    served.begin(row("a", "new", 1, "straddling"))
    plan = served.plan()
    served.commit()
    until = served.replay.commits[-1].completion
    wanted = {("a", "new"): (1, "straddling")}
    assert served.rows(spark, since=since, as_of=until) == {"our reader": wanted, "hudi-rs": wanted, "Spark": {}}
    served.assert_shown(spark)
    served.finish(plan)
    assert served.rows(spark, since=since, as_of=until)["Spark"] == wanted


def test_hudis_own_bloom_lookup_finds_the_rows_of_our_base_files(spark: Any, tmp_path: Path) -> None:
    """A key that it missed would be inserted once more, in another file group: no base file is small enough to take it."""
    served = Served(tmp_path / "t", event_time=True, settings={"hoodie.parquet.bloom.filter.enabled": "true"})
    served.write(*(row(part, f"key {number}", 3, "ours") for part in "ab" for number in range(40)))
    served.write(row("a", "key 7", 4, None))
    assert served.compact().completion
    served.assert_shown(spark)
    served.assert_read_optimized(spark)
    served.table.close()
    changed = [row(part, f"key {number}", 5, "Spark's") for part in "ab" for number in range(30, 50)]
    by_spark = spark_on(spark, served)
    by_spark.upsert(arrow_of(changed), hoodie_index_type="BLOOM", hoodie_parquet_small_file_limit="0")
    served.take_in(changed)
    served.assert_shown(spark)
