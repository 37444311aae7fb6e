"""Random tables, calls, takeovers, faults and crashes against a dictionary; random scans against pyarrow; the merge kernel against a loop.

``HEADGATE_HYPOTHESIS=long`` tries 40 times as many examples, new ones each time.
"""

import sys
import tempfile
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, assume, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
from support.faults import FailingStore, Fault, KilledError
from support.model import Change, Model, Row
from support.readers import read_by_hudi_rs, without_meta
from support.same_rows import assert_same_rows
from support.strategies import Shape, effort, forms, ordering_kinds, present, safe_for_deletes, shapes
from support.systems import NOON, SetClock

from headgate_tables import hudi
from headgate_tables.commitlog import ownership
from headgate_tables.errors import DeposedError, RetryLater, StoreFullError, StoreUnavailableError, SyncFailedError, TablesError, TransactionError
from headgate_tables.system import System

MAX_SET_BACK_MS = 3_000
ERRORS = [
    StoreUnavailableError("injected", fix="Try again."),
    StoreFullError("injected", fix="Make room."),
    SyncFailedError("injected", fix="Open the table again."),
]


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
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
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
        (call,) = self.calls(data, 1)
        if self.open:
            with pytest.raises(TransactionError):
                self.perform(self.owner, call, or_nothing=True)
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

    # --- other handles ---

    @rule()
    def reopen(self) -> None:
        self.owner.close()
        self.owner, self.open = self.handle(), []

    @rule(data=st.data(), fresh=st.booleans())
    def another_takes_over(self, data: st.DataObject, fresh: bool) -> None:
        (taken, late) = self.calls(data, 2, exactly=True)
        assume(taken[1] and late[1])
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
        """All of the calls or none: at first sight, and once a new owner has looked after what was left."""
        note(f"{fault.happened or 'no fault'} (after: {fault.after}) -> {error!r}")
        before, after = self.model, self.model.after([self.change(call) for call in calls])
        expected = [after] if error is None else [before, after]
        first = self.same_as_one_of(self.handle(), expected)
        self.owner = self.handle()
        with self.owner.transaction():
            pass
        second = self.same_as_one_of(self.owner, [after] if first is after else expected)
        if isinstance(error, RetryLater):
            assert len(self.owner.commits()) == self.commits, f"{error!r}, which says that nothing was done"
        there = len(self.owner.commits())
        assert there in (self.commits, self.commits + 1)
        self.commits = there
        self.model = second

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

    def calls(self, data: st.DataObject, most: int, *, exactly: bool = False) -> Calls:
        one = st.sampled_from(["upsert", "upsert", "delete"]).flatmap(
            lambda kind: st.tuples(st.just(kind), st.lists(self.shape.identities() if kind == "delete" else self.shape.rows(), max_size=8), forms)
        )
        return data.draw(st.lists(one, min_size=most if exactly else 1, max_size=most))

    def change(self, call: tuple[str, list[Row], str]) -> Change:
        return Change(call[0], [self.shape.stored(row) for row in call[1]])  # type: ignore[arg-type]

    def perform(self, on: Any, call: tuple[str, list[Row], str], *, or_nothing: bool = False) -> Any:
        kind, rows, form = call
        assume(rows or not or_nothing)
        taken = {*self.shape.record_key, *self.shape.partition_by, self.shape.ordering}
        names = [name for name in self.shape.columns if kind == "upsert" or name in taken]
        return getattr(on, kind)(present(self.shape, rows, names, form))

    def committed(self, calls: Calls) -> None:
        self.model = self.model.after([self.change(call) for call in calls])
        self.commits += any(rows for _, rows, _ in calls)

    def same_as_one_of(self, table: hudi.Table, models: Sequence[Model]) -> Model:
        found = table.scan().to_table()
        for model in models[:-1]:
            try:
                assert_same_rows(found, self.shape.expected(model.rows()), "")
            except AssertionError:
                continue
            return model
        assert_same_rows(found, self.shape.expected(models[-1].rows()), "half of a transaction")
        return models[-1]


def test_a_table_holds_what_a_dictionary_says_whatever_happens() -> None:
    run_state_machine_as_test(Writing, settings=effort(30))
