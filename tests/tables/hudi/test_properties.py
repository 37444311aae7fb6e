"""Random tables, calls, takeovers, faults and crashes against a dictionary; random scans against pyarrow; the merge kernel against a loop.

``HEADGATE_HYPOTHESIS=long`` tries 40 times as many examples, new ones each time.
"""

import contextlib
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
from support.faults import FailingStore, Fault, KilledError
from support.model import Change, Model, Row, rank_of
from support.readers import read_by_hudi_rs, without_meta
from support.same_rows import assert_same_rows
from support.strategies import Column, Kind, Shape, calls_on, effort, expressions, ordering_kinds, present, safe_for_deletes, shapes, values_of
from support.systems import NOON, SetClock

from headgate_tables import hudi
from headgate_tables.commitlog import ownership
from headgate_tables.errors import DeposedError, RetryLater, StoreFullError, StoreUnavailableError, SyncFailedError, TablesError, TransactionError
from headgate_tables.hudi import base_reader
from headgate_tables.hudi.log import parquet_rows
from headgate_tables.hudi.merge import Entries, latest_rows, merge_base, merge_logs
from headgate_tables.system import System

MAX_SET_BACK_MS = 3_000
NAN = float("nan")
ORDER = pc.field("o")
ERRORS = [
    StoreUnavailableError("injected", fix="Try again."),
    StoreFullError("injected", fix="Make room."),
    SyncFailedError("injected", fix="Open the table again."),
]


def new_folder() -> "tempfile.TemporaryDirectory[str]":
    """In memory where there is such a place: fsync is what test_crash.py looks at."""
    return tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)


@dataclass
class CountedIds:
    """Names that no other process of the example gets, the same in each run."""

    count: int = 0

    def token(self) -> str:
        self.count += 1
        return f"{self.count:032x}"

    def table_uuid(self) -> uuid.UUID:
        return uuid.UUID(int=7)


@dataclass
class Open:
    """A transaction of the owner, with what it has done so far."""

    transaction: hudi.Transaction
    changes: list[Change] = field(default_factory=list)


Calls = Sequence[tuple[str, list[Row], str]]
"""Kind, rows as given, and the form in which they are handed in."""


class Writing(RuleBasedStateMachine):
    """One table, one owner at a time, readers beside it; ``model`` holds what was committed."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = new_folder()
        self.path = Path(self.folder.name) / "table"
        self.clock = SetClock()
        self.latest = NOON
        self.system = System(self.clock, CountedIds(), "testhost", 1)
        self.open: list[Open] = []
        self.commits = 0
        self.fold_every = ownership.FOLD_EVERY

    def handle(self, fault: Fault | None = None) -> hudi.Table:
        """A new handle, as another process would have it."""
        store = FailingStore(self.path, self.system.ids)
        table = hudi.Table(store, self.system, take_over=False, metadata_table="refuse")
        store.fault = fault
        return table

    @initialize(shape=shapes(ordering_kinds.map(safe_for_deletes)), fold_every=st.sampled_from([2, 5, 100]))
    def create(self, shape: Shape, fold_every: int) -> None:
        ownership.FOLD_EVERY = fold_every
        self.shape = shape
        note(f"{shape.definition()}")
        self.owner = hudi.create_table(str(self.path), **shape.definition(), system=self.system)
        self.model = Model(shape.record_key, shape.partition_by, shape.ordering)
        self.reader = self.handle()
        self.spare = self.handle()
        assert self.owner.schema == shape.stored_schema

    # --- what callers do ---

    @rule(data=st.data())
    def one_call(self, data: st.DataObject) -> None:
        call = data.draw(calls_on(self.shape, least=int(bool(self.open))))
        if self.open:
            with pytest.raises(TransactionError):
                self.perform(self.owner, call)
            return
        result = self.perform(self.owner, call)
        distinct = {self.model.identity(self.shape.stored(row)) for row in call[1]}
        assert (result.deleted if call[0] == "delete" else result.upserted) == len(distinct)
        assert result.superseded == len(call[1]) - len(distinct)
        assert bool(result.instant) == bool(call[1])
        self.committed([call])

    @rule()
    def begin(self) -> None:
        if len(self.open) == 2:
            with pytest.raises(TransactionError):
                self.owner.transaction()
        else:
            self.open.append(Open(self.owner.transaction()))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def call_in_transaction(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(range(len(self.open))))
        for call in self.calls(data, 2):
            self.perform(self.open[chosen].transaction, call)
            self.open[chosen].changes.append(self.change(call))

    @precondition(lambda self: self.open)
    @rule()
    def commit(self) -> None:
        if len(self.open) == 2 and self.open[1].changes:
            with pytest.raises(TransactionError):
                self.open[1].transaction.commit()
        oldest = self.open.pop(0)
        oldest.transaction.commit()
        self.model = self.model.after(oldest.changes)
        self.commits += any(change.rows for change in oldest.changes)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        self.open.pop(data.draw(st.sampled_from(range(len(self.open))))).transaction.rollback()

    @precondition(lambda self: not self.open)
    @rule(data=st.data(), ends=st.sampled_from(["both", "older", "newer"]))
    def two_at_once(self, data: st.DataObject, ends: str) -> None:
        """Calls on two transactions in any order; the older one's count as earlier, and one of them may be given up."""
        both = [Open(self.owner.transaction()) for _ in range(2)]
        for chosen in data.draw(st.lists(st.sampled_from(both), min_size=2, max_size=4), label="order"):
            call = data.draw(calls_on(self.shape))
            self.perform(chosen.transaction, call)
            chosen.changes.append(self.change(call))
        for each, name in zip(both, ("older", "newer"), strict=True):
            if ends in ("both", name):
                each.transaction.commit()
                self.model = self.model.after(each.changes)
                self.commits += any(change.rows for change in each.changes)
            else:
                each.transaction.rollback()

    # --- other handles ---

    @rule()
    def reopen(self) -> None:
        self.owner.close()
        self.owner, self.open = self.handle(), []

    @rule(data=st.data(), fresh=st.booleans())
    def another_takes_over(self, data: st.DataObject, fresh: bool) -> None:
        taken, late = (data.draw(calls_on(self.shape, least=1)) for _ in range(2))
        deposed, lapsed, owned = self.owner, self.open, bool(self.commits or self.open)
        self.owner, self.open = self.handle() if fresh else self.spare, []
        self.perform(self.owner, taken)
        self.committed([taken])
        if owned and deposed._log is not None and deposed._log.owned:
            for transaction in lapsed[:1]:
                with pytest.raises(DeposedError):
                    self.perform(transaction.transaction, late)
                    transaction.transaction.commit()
            with pytest.raises(DeposedError):
                self.perform(deposed, late)
        self.spare = self.handle()

    @rule(step=st.sampled_from([1, 70_000, 4_000_000]) | st.integers(-MAX_SET_BACK_MS, 10_000))
    def clock_moves(self, step: int) -> None:
        self.clock.now = max(self.clock.now + step, self.latest - MAX_SET_BACK_MS)
        self.latest = max(self.latest, self.clock.now)

    # --- trouble ---

    @rule(data=st.data(), at=st.integers(1, 45), after=st.booleans())
    def process_dies(self, data: st.DataObject, at: int, after: bool) -> None:
        """Kill -9 at a call to the store; then somebody else opens the table."""
        calls = self.calls(data, 3)
        fault = Fault(at, KilledError, after)
        returned = self.try_calls(fault, calls, data.draw(st.booleans()))
        self.examine(calls, returned, fault)

    @rule(data=st.data(), at=st.integers(1, 45), error=st.sampled_from(ERRORS), after=st.booleans(), dies=st.booleans(), again=st.booleans())
    def store_fails(self, data: st.DataObject, at: int, error: TablesError, after: bool, dies: bool, again: bool) -> None:
        """An error of the store; the same handle tries again when the error says so, or another one opens the table."""
        calls = self.calls(data, 3)
        fault = Fault(at, lambda: error, after, dies)
        returned = self.try_calls(fault, calls, data.draw(st.booleans()))
        if again and isinstance(returned, RetryLater):
            returned = self.try_calls(Fault(0), calls, new_handle=False)
            assert returned is None, returned
        self.examine(calls, returned, fault)

    def try_calls(self, fault: Fault, calls: Calls, new_handle: bool) -> BaseException | None:
        """The calls as one transaction of a handle whose store fails once; None when it returned."""
        if new_handle or not isinstance(self.owner._store, FailingStore):
            self.owner, self.open = self.handle(), []
        for each in self.open:
            each.transaction.rollback()
        self.open = []
        self.owner._store.fault = fault
        try:
            with self.owner.transaction() as transaction:
                for call in calls:
                    self.perform(transaction, call)
        except (TablesError, KilledError) as error:
            return error
        finally:
            self.owner._store.fault = None
        return None

    def examine(self, calls: Calls, error: BaseException | None, fault: Fault) -> None:
        """All of the calls or none: at first sight, and for good once a new owner has looked after what was left."""
        note(f"{fault.happened or 'no fault'} (after: {fault.after}) -> {error!r}")
        models = [self.model, self.model.after([self.change(call) for call in calls])]
        wanted = int(any(rows for _, rows, _ in calls))
        seen = self.decided(self.handle(), models)
        self.owner = self.handle()
        with self.owner.transaction():
            pass
        for_good = self.decided(self.owner, models)
        assert seen <= for_good <= wanted
        if error is None:
            assert seen == wanted, "returned, and is not there"
        if isinstance(error, RetryLater):
            assert for_good == 0, f"{error!r} says that nothing was done"
        self.model = models[for_good] if wanted else models[0]
        self.commits += for_good

    def decided(self, table: hudi.Table, models: Sequence[Model]) -> int:
        """How many commits were added, 0 or 1; the rows must be those of that number of commits."""
        added = len(table.commits()) - self.commits
        assert added in (0, 1)
        assert_same_rows(table.scan().to_table(), self.shape.expected(models[added].rows()), f"{added} commits more")
        return added

    # --- after every step ---

    @invariant()
    def readers_see_what_was_committed(self) -> None:
        for who, table in (("owner", self.owner), ("reader", self.reader), ("new handle", self.handle())):
            found = table.scan().to_table()
            assert found.schema == self.shape.stored_schema
            assert_same_rows(found, self.shape.expected(self.model.rows()), who)
        assert len(self.reader.commits()) == self.commits

    def teardown(self) -> None:
        try:
            if hasattr(self, "owner") and sys.exception() is None:
                verification = self.reader.verify()
                assert verification.ok, verification.findings
                if self.commits:
                    assert_same_rows(without_meta(read_by_hudi_rs(self.path)), self.shape.expected(self.model.rows()), "hudi-rs")
        finally:
            ownership.FOLD_EVERY = self.fold_every
            self.folder.cleanup()

    # --- helpers ---

    def calls(self, data: st.DataObject, most: int) -> Calls:
        return data.draw(st.lists(calls_on(self.shape), min_size=1, max_size=most))

    def change(self, call: tuple[str, list[Row], str]) -> Change:
        return Change(call[0], [self.shape.stored(row) for row in call[1]])  # type: ignore[arg-type]

    def perform(self, on: Any, call: tuple[str, list[Row], str]) -> Any:
        kind, rows, form = call
        return getattr(on, kind)(present(self.shape, rows, self.shape.named(kind), form))

    def committed(self, calls: Calls) -> None:
        self.model = self.model.after([self.change(call) for call in calls])
        self.commits += any(rows for _, rows, _ in calls)


def test_a_table_holds_what_a_dictionary_says_whatever_happens() -> None:
    run_state_machine_as_test(Writing, settings=effort(30))


# --- scans ---


@effort(50)
@given(shape=shapes(ordering_kinds.map(safe_for_deletes), max_others=3), rows_of_a_group=st.integers(1, 3), data=st.data())
def test_a_scan_gives_what_pyarrow_selects_from_the_whole_table(shape: Shape, rows_of_a_group: int, data: st.DataObject) -> None:
    with new_folder() as folder, small_pieces(rows_of_a_group):
        table = hudi.create_table(f"{folder}/table", **shape.definition())
        for _ in range(data.draw(st.integers(1, 4))):
            kind, rows, form = data.draw(calls_on(shape))
            getattr(table, kind)(present(shape, rows, shape.named(kind), form))
        everything = table.scan(meta_columns=True).to_table()
        assume(everything.num_rows)
        for _ in range(6):
            check_scan(table, shape, everything, data)


@effort(60)
@given(data=st.data(), rows_of_a_group=st.integers(1, 2))
def test_a_filter_that_statistics_can_answer_shows_no_row_that_lost(data: st.DataObject, rows_of_a_group: int) -> None:
    few = Kind(pa.int64(), pa.int64(), st.integers(0, 4))
    columns = {"k": Column(few, False), "o": Column(few, False), "c": Column(few, True)}
    pools = [[{name: value} for value in range(5)] for name in ("k", "o")]
    shape = Shape(columns, ("k",), (), "o", 1, False, False, pools[0], [{}], pools[1])
    with new_folder() as folder, small_pieces(rows_of_a_group):
        table = hudi.create_table(f"{folder}/table", **shape.definition())
        for kind in ("upsert", "upsert", "delete", "upsert"):
            rows = data.draw(st.lists(shape.identities() if kind == "delete" else shape.rows(), min_size=2, max_size=4))
            getattr(table, kind)(present(shape, rows, shape.named(kind), "whole"))
        everything = table.scan(meta_columns=True).to_table()
        for _ in range(10):
            check_scan(table, shape, everything, data)


def check_scan(table: hudi.Table, shape: Shape, everything: pa.Table, data: st.DataObject) -> None:
    columns = data.draw(st.none() | st.lists(st.sampled_from(list(shape.columns)), min_size=1, unique=True), label="columns")
    expression = data.draw(st.none() | expressions(everything, shape.named("delete")), label="filter")
    chosen = st.lists(partition_of(shape, everything), max_size=2) if shape.partition_by else st.none()
    partitions = data.draw(st.none() | chosen, label="partitions")
    wanted = everything
    if expression is not None:
        wanted = wanted.filter(expression)
    if partitions is not None:
        selected = [any(selects(partition, row) for partition in partitions) for row in wanted.to_pylist()]
        wanted = wanted.filter(pa.array(selected, pa.bool_()))
    wanted = wanted.select(columns or list(shape.columns))
    scan = table.scan(columns, partitions, expression)
    found = scan.to_table()
    assert found.schema == wanted.schema == scan.schema
    assert_same_rows(found, wanted, "to_table")
    reader = scan.to_reader()
    assert reader.schema == wanted.schema
    assert_same_rows(reader.read_all(), wanted, "to_reader")


def partition_of(shape: Shape, everything: pa.Table) -> st.SearchStrategy[Any]:
    """A path, or values of some partition columns, that are or are not there."""
    paths = st.sampled_from([*everything["_hoodie_partition_path"].to_pylist(), "nowhere"])
    named = st.sampled_from(shape.partition_by).flatmap(lambda name: st.sampled_from(everything[name].to_pylist()).map(lambda value: {name: value}))
    whole = st.sampled_from(everything.select(list(shape.partition_by)).to_pylist())
    return paths | named | whole


def selects(partition: Any, row: Row) -> bool:
    if isinstance(partition, str):
        return bool(row["_hoodie_partition_path"] == partition)
    return all(row[name] == value for name, value in partition.items())


@contextlib.contextmanager
def small_pieces(rows_of_a_group: int) -> Iterator[None]:
    """Row groups and batches of so few rows that there are many of both."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_rows, "_GROUP_ROWS", rows_of_a_group)
        patch.setattr(base_reader, "BATCH_ROWS", 2)
        yield


@pytest.mark.parametrize(
    "filter",
    [~(ORDER > 5), ~(ORDER <= 7), ~((ORDER > 5) | (ORDER <= 5)), ORDER.isin([NAN]), pc.is_nan(ORDER), ~((ORDER >= 6) & (ORDER <= 7))],
    ids=str,
)
def test_nan_is_found_although_statistics_do_not_tell_of_it(filter: pc.Expression) -> None:
    with new_folder() as folder:
        schema = pa.schema([("k", pa.int64()), ("o", pa.float64())])
        table = hudi.create_table(f"{folder}/table", schema, record_key="k", ordering="o", buckets=1)
        table.upsert(pa.table({"k": [1, 2, 3], "o": [6.0, 7.0, NAN]}, schema=schema))
        assert table.scan(filter=filter).to_table()["k"].to_pylist() == [3]


# --- the merge kernel ---

FLOATS = st.sampled_from([pa.float32(), pa.float64()])
RANKED = FLOATS | st.sampled_from([pa.int32(), pa.int64(), pa.string(), pa.date32(), pa.timestamp("us", tz="UTC"), pa.decimal128(12, 3)])
Entry = tuple[str, Any, bool, bool]
"""Key, ordering value, whether it is a delete, whether an unconditional one."""


@st.composite
def merges(draw: Any) -> tuple[pa.DataType | None, list[Entry], list[tuple[str, Any]]]:
    """The ordering's type (None with commit time), log entries, and base rows of distinct keys."""
    kind = draw(st.none() | RANKED | RANKED)
    values = st.just(None) if kind is None else st.sampled_from(draw(st.lists(values_of(kind), min_size=1, max_size=5)))
    one = st.tuples(st.sampled_from("abc"), values, st.booleans(), st.integers(0, 3))
    drawn = draw(st.integers(0, 14).flatmap(lambda size: st.lists(one, min_size=size, max_size=size)))
    entries = [(key, value, delete, delete and (kind is None or odd == 0)) for key, value, delete, odd in drawn]
    entries = [(key, None if unconditional else value, delete, unconditional) for key, value, delete, unconditional in entries]
    base = draw(st.dictionaries(st.sampled_from("abcdef"), st.none() | values, max_size=5))
    return kind, entries, list(base.items())


def fold(kind: pa.DataType | None, entries: Sequence[Entry], base: Sequence[tuple[str, Any]]) -> tuple[dict[str, int], set[str]]:
    """One entry after the other: position of the entry that stands for each key, and keys whose base row stands."""
    standing: dict[str, int] = {}
    for position, (key, value, _, unconditional) in enumerate(entries):
        held = standing.get(key)
        if held is None or kind is None or unconditional or entries[held][3] or rank_of(value) >= rank_of(entries[held][1]):
            standing[key] = position
    kept = set()
    for key, value in base:
        held = standing.get(key)
        if held is None or (kind is not None and value is not None and not entries[held][3] and rank_of(value) > rank_of(entries[held][1])):
            kept.add(key)
    return standing, kept


@effort(300)
@given(merge=merges())
def test_the_merge_kernel_does_what_a_loop_over_the_entries_does(merge: tuple[pa.DataType | None, list[Entry], list[tuple[str, Any]]]) -> None:
    kind, entries, base = merge
    standing, kept = fold(kind, entries, base)
    ordering = None if kind is None else pa.array([value for _, value, _, _ in entries], kind)
    flags = [np.array([bool(entry[place]) for entry in entries], dtype=bool) for place in (2, 3)]
    winners = merge_logs(Entries(pa.array([entry[0] for entry in entries], pa.string()), ordering, *flags))
    assert dict(zip(winners.keys.to_pylist(), winners.positions.tolist(), strict=True)) == standing
    assert winners.deletes.tolist() == [entries[position][2] for position in winners.positions]
    keys = pa.array([key for key, _ in base], pa.string())
    outcome = merge_base(winners, keys, None if kind is None else pa.array([value for _, value in base], kind))
    assert {key for (key, _), keep in zip(base, outcome.keep.tolist(), strict=True) if keep} == kept
    assert {winners.keys[number].as_py() for number in outcome.beaten.tolist()} == kept & standing.keys()


@effort(300)
@given(merge=merges())
def test_of_the_rows_of_one_batch_the_largest_and_then_the_last_stays(merge: tuple[pa.DataType | None, list[Entry], list[tuple[str, Any]]]) -> None:
    kind, entries, _ = merge
    rows = [entry for entry in entries if not entry[3]]
    identity = np.unique([entry[0] for entry in rows], return_inverse=True)[1].astype(np.int64)
    ordering = None if kind is None else pa.array([entry[1] for entry in rows], kind)
    assert latest_rows(identity, ordering).tolist() == sorted(fold(kind, rows, [])[0].values())
