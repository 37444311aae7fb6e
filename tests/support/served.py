"""A table that is written and served step by step, beside the replay that knows what it must show.

One bucket a partition; the partitions are there from the first commit on, which is in base files.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate_tables import hudi
from headgate_tables.errors import RangeGoneError
from headgate_tables.face.operation import Operation, OperationResult, Plan
from headgate_tables.face.results import CompactResult
from headgate_tables.hudi.timeline.active import read_timeline
from headgate_tables.system import System
from support.readers import query_by_hudi_rs
from support.replay import Committed, CompactedAt, Entry, Replay, Rows
from support.slices import execute
from support.spark_hudi import read_by_spark

_COLUMNS: dict[str, pa.DataType] = {"p": pa.string(), "id": pa.string(), "n": pa.int64(), "v": pa.string()}
SCHEMA = pa.schema(_COLUMNS)
PARTITIONS = ("a", "b")
SMALL = {
    "hoodie.clean.commits.retained": "4",
    "hoodie.keep.min.commits": "6",
    "hoodie.keep.max.commits": "9",
    "headgate.clean.min.age": "0",
    "headgate.log.retire.after": "0",
}
"""Settings with which a short story cleans and archives."""


class Served:
    """``table`` and ``replay`` take every step made here. ``event_time``: the larger ``n`` wins, else the later commit."""

    def __init__(
        self, path: Path, *, event_time: bool, system: System | None = None, settings: Mapping[str, str | None] = SMALL
    ) -> None:
        self.path = path
        self._system = system
        self.replay = Replay(event_time)
        self.table = hudi.create_table(
            str(path), SCHEMA, record_key="id", partition_by="p", ordering="n" if event_time else None, buckets=1, system=system
        )
        self.table.configure(settings)
        self.saved: dict[str, str] = {}
        self._open: list[tuple[hudi.Transaction, Sequence[Entry]]] = []
        first = [Entry((partition, key), 2, "first") for partition in PARTITIONS for key in "uw"]
        self._write(first, in_base=True)

    # --- rows ---

    def write(self, *entries: Entry) -> None:
        """One transaction."""
        self._write(entries)

    def begin(self, *entries: Entry) -> hudi.Transaction:
        """A transaction that stays open with its files written."""
        transaction = self.table.transaction()
        put(transaction, entries)
        self._open.append((transaction, entries))
        return transaction

    def commit(self, *, younger: bool = False) -> None:
        """The older of the open transactions."""
        transaction, entries = self._open.pop(-1 if younger else 0)
        transaction.commit()
        self.take_in(entries)

    def _write(self, entries: Sequence[Entry], *, in_base: bool = False) -> None:
        with self.table.transaction() as transaction:
            put(transaction, entries)
        self.take_in(entries, in_base=in_base)

    # --- services ---

    def compact(self) -> CompactResult:
        """Of a plan that is open, or of a new one."""
        result = self.table.compact()
        assert not result.dropped
        self.take_in()
        return result

    def plan(self) -> Plan:
        """Of every slice with logs."""
        plan = self.table.plan_compaction(forced=True)
        assert plan is not None
        return plan

    def run(self, operation: Operation, plan: Plan) -> OperationResult:
        """As a compactor does, which knows the plan alone."""
        return execute(self.table, operation, plan.instant)

    def finish(self, plan: Plan, *, drop: str = "") -> None:
        """Without the slice of partition ``drop``."""
        dropped = {each: "the test drops it" for each in plan.operations if each.partition == drop}
        finished = [self.run(each, plan) for each in plan.operations if each.partition != drop]
        self.table.finish_plan(plan.instant, finished, dropped)
        self.take_in()

    def savepoint(self) -> str:
        """Its instant."""
        instant = self.table.savepoint("for the test")
        self.saved[instant] = next(each.completion for each in self.table.commits() if each.instant == instant)
        return instant

    def restore(self, instant: str) -> None:
        """To a savepoint; open transactions lapse."""
        self.table.restore(instant)
        self._open.clear()
        self.replay.undo_after(self.saved[instant])

    def reopen(self) -> None:
        """The next owner; open transactions lapse."""
        self.table.close()
        self.table = hudi.open_table(str(self.path), system=self._system)
        self._open.clear()

    def adopt(self) -> None:
        """What Spark did becomes the table's own, by a new handle."""
        self.reopen()
        self.table.adopt()

    def take_in(self, entries: Sequence[Entry] = (), *, in_base: bool = False) -> None:
        """What is new on the timeline: a delta commit is that of ``entries``, a commit is a compaction."""
        known = {each.instant for each in self._events()}
        for each in read_timeline(self.table._store).writes():
            if each.time not in known and each.action == "commit":
                compacted = frozenset(file.parent.name for file in self.path.rglob(f"*_{each.time}.parquet"))
                self.replay.compactions.append(CompactedAt(each.time, each.completion, compacted))
            elif each.time not in known:
                assert entries, f"{each.name} was written by nobody"
                self.replay.commits.append(Committed(each.time, each.completion, entries, in_base))

    def _events(self) -> list[Committed | CompactedAt]:
        return [*self.replay.commits, *self.replay.compactions]

    # --- what readers show ---

    def rows(self, spark: Any = None, **query: Any) -> dict[str, Rows]:
        """By us, by hudi-rs and, with ``spark``, by Spark."""
        with hudi.open_table(str(self.path)) as table:
            found = {"our reader": shown(table.scan(**query).to_table().to_pylist())}
        found["hudi-rs"] = shown(query_by_hudi_rs(self.path, **query))
        if spark is not None:
            found["Spark"] = shown(read_by_spark(spark, self.path, **query).to_pylist())
        return found

    def assert_shown(self, spark: Any = None) -> None:
        """The snapshot, by all."""
        _assert_all(self.rows(spark), self.replay.rows(), "snapshot")

    def assert_read_optimized(self, spark: Any = None) -> None:
        """Base files alone, by all."""
        _assert_all(self.rows(spark, mode="read_optimized"), self.replay.base_rows(), "read optimised")

    def points(self) -> list[str]:
        """Times as of which the table can be read and every reader means the same.

        Hudi's readers take for known as of a time what was requested up to it, whenever that completed; Spark refuses times
        that are not before the instants of open transactions.
        """
        found = []
        first_open = min((transaction.instant for transaction, _ in self._open), default="9")
        for point in self._there(max(each.instant, each.completion) for each in self._events()):
            requested = {each.instant for each in self._events() if each.instant <= point}
            completed = {each.instant for each in self._events() if each.completion <= point}
            if requested == completed and point < first_open:
                found.append(point)
        return found

    def ranges(self) -> list[tuple[str, str]]:
        """Since and until: completion times of what the active timeline has and no cleaning took."""
        there = self._there(self.replay.points)
        return [(first, last) for number, first in enumerate(there) for last in there[number + 1 :]]

    def assert_past(self, spark: Any, points: Iterable[str]) -> None:
        """As of these points, by all."""
        for point in points:
            _assert_all(self.rows(spark, as_of=point), self.replay.rows(point), f"as of {point}")

    def assert_changed(self, spark: Any, ranges: Iterable[tuple[str, str]]) -> None:
        """In these ranges, by all; without hudi-rs behind a compaction, where it goes by requested times, and without Spark
        where ``spark_misses_rows``.
        """
        for since, until in ranges:
            found = self.rows(spark, since=since, as_of=until)
            if any(each.instant <= until for each in self.replay.compactions):
                del found["hudi-rs"]
            if self.spark_misses_rows(since, until):
                found.pop("Spark", None)
            _assert_all(found, self.replay.changed(since, until), f"since {since} until {until}")

    def spark_misses_rows(self, since: str, until: str) -> bool:
        """Whether Spark leaves rows of the range out: it looks at slices up to the newest *requested* time of the range, and not
        at those of open compactions that are younger, on which rows lie that completed after the compaction was planned
        (test_spark_misses_a_commit_in_a_range_that_ends_with_it_while_a_younger_compaction_is_open).
        """
        among = [each for each in self._events() if since < each.completion <= until]
        newest = max(each.instant for each in among)
        done = {each.instant for each in self.replay.compactions}
        planned = {file.name[:17] for file in (self.path / ".hoodie/timeline").glob("*.compaction.requested")}
        return any(newest < instant < each.completion for instant in planned - done for each in among)

    def _there(self, points: Iterable[str]) -> list[str]:
        """Those as of which the table can be read, sorted. No savepoints: Spark and hudi-rs refuse them behind a cleaning."""
        found = []
        with hudi.open_table(str(self.path)) as table:
            oldest = table.commits()[0].completion
            for point in sorted({*points} - {*self.saved.values()}):
                try:
                    table.scan(as_of=point)
                except RangeGoneError:
                    continue
                found += [point] if point >= oldest else []
        return found


def put(transaction: hudi.Transaction, entries: Sequence[Entry]) -> None:
    """Upserts, then deletes: no key is in both."""
    for entries_of_kind, call in (
        ([entry for entry in entries if entry.value is not None], transaction.upsert),
        ([entry for entry in entries if entry.value is None], transaction.delete),
    ):
        if entries_of_kind:
            call(arrow_of(entries_of_kind))


def arrow_of(entries: Iterable[Entry]) -> pa.Table:
    """One row each."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, (*entry.key, *entry[1:]), strict=True)) for entry in entries], SCHEMA)


def shown(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """As the replay has them. Fails for a key that is there twice."""
    listed = [((row["p"], row["id"]), (row["n"], row["v"])) for row in rows]
    found = dict(listed)
    assert len(found) == len(listed), f"a key twice: {sorted(listed)}"
    return found


def _assert_all(found: Mapping[str, Rows], wanted: Rows, what: str) -> None:
    for who, rows in found.items():
        wrong = {key: (rows.get(key), wanted.get(key)) for key in rows.keys() | wanted.keys() if rows.get(key) != wanted.get(key)}
        assert not wrong, f"{who}, {what}: {wrong} (shown, expected)"
