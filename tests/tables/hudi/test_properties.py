"""Random tables, calls, transactions, takeovers, failing stores and dying processes against a dictionary.

``HEADGATE_HYPOTHESIS=long`` tries 40 times as many examples, new ones each time.
"""

import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa
import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from headgate_tables import hudi
from headgate_tables.commitlog import commit_log
from headgate_tables.errors import (
    DeposedError,
    FixCall,
    RetryLater,
    StoreFullError,
    StoreUnavailableError,
    SyncFailedError,
    TablesError,
    TransactionError,
)
from headgate_tables.system import System
from support.faults import FailingStore, Fault, InPlaceStore, KilledError
from support.handles import open_on
from support.model import Change, Model, Row
from support.readers import read_by_hudi_rs, without_meta
from support.same_rows import assert_same_rows
from support.strategies import Shape, calls_on, effort, new_folder, present, shapes
from support.systems import NOON, SetClock

MAX_SET_BACK_MS = 3_000


def unavailable() -> TablesError:
    return StoreUnavailableError("injected", fix="Try again.")


def full() -> TablesError:
    return StoreFullError("injected", fix="Make room.")


def sync_failed() -> TablesError:
    return SyncFailedError("injected", fix="Open the table again.")


Trouble = Callable[[], BaseException]
TROUBLE: list[Trouble] = [KilledError, unavailable, full, sync_failed]


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


Call = tuple[Literal["upsert", "delete"], list[Row], str]
"""Kind, rows as given, and the form in which they are handed in."""
Calls = Sequence[Call]


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
        self.fold_every = commit_log.FOLD_EVERY

    def handle(self) -> hudi.Table:
        """A new handle, as another process would have it."""
        return open_on(self.store(self.path, self.system.ids), self.system)

    @initialize(shape=shapes(), fold_every=st.sampled_from([2, 5, 100]), store=st.sampled_from([FailingStore, InPlaceStore]))
    def create(self, shape: Shape, fold_every: int, store: type[FailingStore]) -> None:
        commit_log.FOLD_EVERY = fold_every
        self.store = store
        self.shape = shape
        note(f"{shape.definition()}")
        assert hudi.create_table(str(self.path), **shape.definition(), system=self.system).schema == shape.stored_schema
        self.model = Model(shape.record_key, shape.partition_by, shape.ordering)
        self.owner, self.reader, self.spare = (self.handle() for _ in range(3))

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
        self.committed([self.change(call)])

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
            self.call_in(self.open[chosen], call)

    @precondition(lambda self: self.open)
    @rule()
    def commit(self) -> None:
        if len(self.open) == 2 and any(change.rows for change in self.open[1].changes):
            with pytest.raises(TransactionError):
                self.open[1].transaction.commit()
        self.commit_of(self.open.pop(0))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        self.open.pop(data.draw(st.sampled_from(range(len(self.open))))).transaction.rollback()

    @precondition(lambda self: not self.open)
    @rule(data=st.data(), ends=st.sampled_from(["both", "older", "newer"]))
    def two_at_once(self, data: st.DataObject, ends: str) -> None:
        """Calls on two transactions in any order; the older one's count as earlier, and one of them may be given up."""
        both = [Open(self.owner.transaction()) for _ in range(2)]
        for number in data.draw(st.sampled_from([(1, 0), (1, 0, 1), (0, 1, 0), (1, 0, 0, 1)]), label="order"):
            self.call_in(both[number], data.draw(calls_on(self.shape, least=1)))
        for each, name in zip(both, ("older", "newer"), strict=True):
            if ends in ("both", name):
                self.commit_of(each)
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
        self.committed([self.change(taken)])
        if owned and deposed._opened.log is not None and deposed._opened.log.owned:
            for each in lapsed[:1]:
                with pytest.raises(DeposedError):
                    self.end_with(each, late)
            with pytest.raises(DeposedError):
                self.perform(deposed, late)
        self.spare = self.handle()

    @rule(step=st.sampled_from([1, 70_000, 4_000_000]) | st.integers(-MAX_SET_BACK_MS, 10_000))
    def clock_moves(self, step: int) -> None:
        self.clock.now = max(self.clock.now + step, self.latest - MAX_SET_BACK_MS)
        self.latest = max(self.latest, self.clock.now)

    # --- trouble ---

    @rule(data=st.data(), at=st.integers(1, 45), what=st.sampled_from(TROUBLE), after=st.booleans(), lasting=st.booleans())
    def a_call_to_the_store_fails(
        self, data: st.DataObject, at: int, what: Callable[[], BaseException], after: bool, lasting: bool
    ) -> None:
        """The process dies there, or gets an error and may try again when that says so. Then somebody else opens the table."""
        calls = self.calls(data, 3)
        fault = Fault(at, what, after, lasting or what is KilledError)
        ended = self.try_calls(fault, calls, new_handle=data.draw(st.booleans(), label="new handle"))
        if isinstance(ended, RetryLater) and data.draw(st.booleans(), label="again"):
            ended = self.try_calls(None, calls)
            assert ended is None, ended
        self.examine(calls, ended, fault)

    def try_calls(self, fault: Fault | None, calls: Calls, *, new_handle: bool = False) -> BaseException | None:
        """The calls as one transaction of a handle whose store fails once; None when it returned."""
        if new_handle:
            self.owner, self.open = self.handle(), []
        for each in self.open:
            each.transaction.rollback()
        self.open = []
        store = cast("FailingStore", self.owner._store)
        store.fault = fault
        try:
            with self.owner.transaction() as transaction:
                for call in calls:
                    self.perform(transaction, call)
        except (TablesError, KilledError) as error:
            return error
        finally:
            store.fault = None
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
            commit_log.FOLD_EVERY = self.fold_every
            self.folder.cleanup()

    # --- helpers ---

    def calls(self, data: st.DataObject, most: int) -> Calls:
        return data.draw(st.lists(calls_on(self.shape), min_size=1, max_size=most))

    def change(self, call: Call) -> Change:
        return Change(call[0], [self.shape.stored(row) for row in call[1]])

    def perform(self, on: Any, call: Call) -> Any:
        kind, rows, form = call
        return getattr(on, kind)(present(self.shape, rows, self.shape.named(kind), form))

    def call_in(self, chosen: Open, call: Call) -> None:
        self.perform(chosen.transaction, call)
        chosen.changes.append(self.change(call))

    def end_with(self, chosen: Open, call: Call) -> None:
        """A deposed one notices at its first file when the clock has moved on, else at its commit."""
        self.call_in(chosen, call)
        chosen.transaction.commit()

    def commit_of(self, chosen: Open) -> None:
        chosen.transaction.commit()
        self.committed(chosen.changes)

    def committed(self, changes: Sequence[Change]) -> None:
        self.model = self.model.after(changes)
        self.commits += any(change.rows for change in changes)


@pytest.mark.slow
def test_a_table_holds_what_a_dictionary_says_whatever_happens() -> None:
    run_state_machine_as_test(Writing, settings=effort(100))


@pytest.mark.parametrize("kind", [pa.int32(), pa.date32()], ids=str)
def test_a_delete_that_hudi_would_take_for_one_without_ordering_is_refused(kind: pa.DataType) -> None:
    schema = pa.schema([("k", pa.int64()), ("o", kind)])
    with new_folder() as folder:
        table = hudi.create_table(f"{folder}/table", schema, record_key="k", ordering="o")
        table.upsert(pa.table({"k": [1, 2], "o": pa.array([5, 0], pa.int32()).cast(kind)}, schema=schema))
        with pytest.raises(FixCall, match="value 0 in its ordering column 'o'"):
            table.delete(pa.table({"k": [2, 1], "o": pa.array([1, 0], pa.int32()).cast(kind)}, schema=schema))
        assert len(table.commits()) == 1
        table.delete(pa.table({"k": [2, 1], "o": pa.array([1, -1], pa.int32()).cast(kind)}, schema=schema))
        assert table.scan().to_table()["k"].to_pylist() == [1]
