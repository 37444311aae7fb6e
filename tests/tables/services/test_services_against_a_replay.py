"""Upserts, deletes, alterations, compactions, cleaning, archiving, savepoints and restores in any order, with processes that die
anywhere.

``HEADGATE_HYPOTHESIS=long`` tries 40 times as many examples, new ones each time.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from headgate_tables import hudi
from headgate_tables.commitlog import commit_log
from headgate_tables.errors import RangeGoneError
from headgate_tables.face.altering import Alteration
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.timeline.active import content_of, read_timeline
from headgate_tables.hudi.timeline.commit_metadata import decode_commit
from headgate_tables.hudi.timeline.instant import Instant
from headgate_tables.hudi.view import list_data_files
from support.faults import FailingStore, Fault, InPlaceStore, KilledError
from support.handles import open_on
from support.readers import query_by_hudi_rs
from support.replay import Committed, CompactedAt, Entry, Replay
from support.strategies import effort, new_folder
from support.systems import SetClock, system

SCHEMA = pa.schema([("p", pa.string()), ("id", pa.string()), ("n", pa.int64()), ("v", pa.string())])
ENTRIES = st.lists(
    st.builds(
        Entry,
        st.tuples(st.sampled_from("ab"), st.sampled_from("uvwxyz")),
        st.integers(1, 6),
        st.none() | st.sampled_from(["red", "green", "blue"]),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda entry: entry.key,
)
Service = Callable[[hudi.Table], Any]


class Living(RuleBasedStateMachine):
    """``replay`` holds what was decided; after a crash the timeline says what was."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = new_folder()
        self.path = Path(self.folder.name) / "table"
        self.clock = SetClock()
        self.latest = self.clock.now
        self.system = system(self.clock)
        self.fold_every = commit_log.FOLD_EVERY
        self.open: tuple[hudi.Transaction, Sequence[Entry]] | None = None
        self.saved: dict[str, str] = {}

    @initialize(
        event_time=st.booleans(),
        store=st.sampled_from([FailingStore, InPlaceStore]),
        fold_every=st.sampled_from([2, 5, 100]),
        keep=st.sampled_from([(2, 4), (3, 8), (10, 60)]),
    )
    def create(self, event_time: bool, store: type[FailingStore], fold_every: int, keep: tuple[int, int]) -> None:
        commit_log.FOLD_EVERY = fold_every
        self.store = store
        ordering = "n" if event_time else None
        options: Any = {"record_key": "id", "partition_by": "p", "ordering": ordering, "buckets": 1, "system": self.system}
        hudi.create_table(str(self.path), SCHEMA, **options)
        self.replay = Replay(event_time)
        self.owner = self.handle()
        self.reader = self.handle()
        self.owner.configure(
            {
                "hoodie.clean.commits.retained": str(keep[0] - 1),
                "hoodie.keep.min.commits": str(keep[0]),
                "hoodie.keep.max.commits": str(keep[1]),
                "hoodie.compact.inline.max.delta.commits": "2",
                "headgate.clean.min.age": "0",
                "headgate.log.retire.after": "0",
            }
        )

        first = [Entry((partition, key), 2, "first") for partition in "ab" for key in "uw"]
        with self.owner.transaction() as transaction:
            put(transaction, first)
        self.take_in(first, in_base=True)

    def handle(self) -> hudi.Table:
        store = self.store(self.path, self.system.ids)
        return open_on(store, self.system)

    # --- rows ---

    @rule(entries=ENTRIES)
    def write(self, entries: Sequence[Entry]) -> None:
        if self.open is None:
            with self.owner.transaction() as transaction:
                put(transaction, entries)
            self.take_in(entries)

    @precondition(lambda self: self.open is None)
    @rule(entries=ENTRIES)
    def begin(self, entries: Sequence[Entry]) -> None:
        """A transaction that stays open while services run: requested before their instants, completed after them."""
        transaction = self.owner.transaction()
        put(transaction, entries)
        self.open = transaction, entries

    @precondition(lambda self: self.open)
    @rule(again=ENTRIES)
    def commit(self, again: Sequence[Entry]) -> None:
        assert self.open is not None
        (transaction, entries), self.open = self.open, None
        transaction.commit()
        self.take_in(entries)

    # --- services ---

    @precondition(lambda self: self.open is None)
    @rule()
    def change_columns(self) -> None:
        alter(self.owner)
        self.take_in(())

    @rule(step=st.sampled_from(["plan", "compact", "cancel", "clean", "archive", "maintain"]))
    def serve(self, step: str) -> None:
        SERVICES[step](self.owner)
        self.take_in(())
        if step == "compact":
            assert shown(self.owner.scan(mode="read_optimized")) == self.replay.base_rows()

    @precondition(lambda self: self.replay.commits)
    @rule()
    def save(self) -> None:
        instant = self.owner.savepoint("for the test")
        self.saved[instant] = next(each.completion for each in self.owner.commits() if each.instant == instant)

    @precondition(lambda self: self.saved)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        instant = data.draw(st.sampled_from(sorted(self.saved)))
        self.owner.remove_savepoint(instant)
        del self.saved[instant]

    @precondition(lambda self: self.saved)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        instant = data.draw(st.sampled_from(sorted(self.saved)))
        self.owner.restore(instant)
        self.restored(instant)

    def restored(self, instant: str) -> None:
        point = self.saved[instant]
        self.replay.undo_after(point)
        self.saved = {saved: completion for saved, completion in self.saved.items() if completion <= point}
        self.open = None

    # --- trouble ---

    @rule()
    def reopen(self) -> None:
        self.owner.close()
        self.owner, self.open = self.handle(), None

    @rule(step=st.sampled_from([-3_000, 1, 70_000]))
    def clock_moves(self, step: int) -> None:
        self.clock.now = max(self.clock.now + step, self.latest - 3_000)
        self.latest = max(self.latest, self.clock.now)

    @rule(
        data=st.data(),
        step=st.sampled_from(["write", "plan", "compact", "cancel", "clean", "archive", "maintain", "restore", "alter"]),
        at=st.integers(1, 80),
        after=st.booleans(),
    )
    def dies(self, data: st.DataObject, step: str, at: int, after: bool) -> None:
        """The process dies at a call to its store; another one opens the table."""
        entries = data.draw(ENTRIES) if step == "write" else ()
        target = data.draw(st.sampled_from(sorted(self.saved))) if step == "restore" and self.saved else ""
        if self.open is not None:
            self.open[0].rollback()
            self.open = None
        fault = Fault(at, KilledError, after)
        cast("FailingStore", self.owner._store).fault = fault
        try:
            if entries:
                with self.owner.transaction() as transaction:
                    put(transaction, entries)
            elif target:
                self.owner.restore(target)
            elif step != "restore":
                SERVICES[step](self.owner)
        except KilledError:
            note(f"{step} died at {fault.happened}")
        finally:
            cast("FailingStore", self.owner._store).fault = None
        self.owner = self.handle()
        self.owner.own()
        if target and any(name.endswith(".restore") and self.new(name) for name in self.names()):
            self.restored(target)
        self.take_in(entries)

    # --- after every step ---

    @invariant()
    def snapshots_are_right(self) -> None:
        if not hasattr(self, "replay"):
            return
        wanted = self.replay.rows()
        for who, table in (("owner", self.owner), ("reader", self.reader), ("new handle", self.handle())):
            assert shown(table.scan()) == wanted, who

    @invariant()
    def the_past_is_right_or_said_to_be_gone(self) -> None:
        if not hasattr(self, "replay"):
            return
        table = self.handle()
        state = table._opened.log.state  # type: ignore[union-attr]
        active = sorted(instant.completion for instant in read_timeline(table._store).writes())
        for point in self.replay.points[-6:]:
            try:
                assert shown(table.scan(as_of=point)) == self.replay.rows(point), f"as of {point}"
            except RangeGoneError:
                assert point < state.cleaned or point < active[0], f"{point} is readable, cleaned until {state.cleaned}"
            try:
                found = shown(table.scan(since=point))
            except RangeGoneError:
                assert point < state.cleaned or point < active[0], f"since {point}, cleaned until {state.cleaned}"
            else:
                wanted = self.replay.changed(point)
                assert found == wanted, f"since {point}: {found} {wanted} {self.replay}"
        for saved, point in self.saved.items():
            assert shown(table.scan(as_of=saved)) == self.replay.rows(point), "a savepoint"

    def teardown(self) -> None:
        try:
            if hasattr(self, "replay") and sys.exception() is None:
                assert (found := self.handle().verify()).ok, found.findings
                self.nothing_is_left_over()
                if self.replay.points:
                    rows = query_by_hudi_rs(self.path)
                    assert {(r["p"], r["id"]): (r["n"], r["v"]) for r in rows} == self.replay.rows(), "hudi-rs"
                    assert len(rows) == len(self.replay.rows())
        finally:
            commit_log.FOLD_EVERY = self.fold_every
            self.folder.cleanup()

    def nothing_is_left_over(self) -> None:
        """Once nothing is open: no file of an instant that did not complete, and slots only behind the last folds."""
        table = self.handle()
        cancel(table)
        commit_log.FOLD_EVERY = 1
        for _ in range(3):
            table.win_offsets({})
            table.tidy()
        view = table._snapshots.current().view
        known = {part.path(name) for group in view.groups() for part in group.slices() for name in part.names}
        assert {path for path, _ in list_data_files(table._store)} == known
        assert not view.timeline.pending
        assert not table._opened.log.state.deleting  # type: ignore[union-attr]
        assert len(list((self.path / LOG_LAYOUT.slots).iterdir())) <= 6
        assert len(list((self.path / LOG_LAYOUT.folds).iterdir())) <= 3

    # --- helpers ---

    def take_in(self, entries: Sequence[Entry], *, in_base: bool = False) -> None:
        """What is new on the timeline: a delta commit is that of ``entries``, a commit is a compaction."""
        known = {each.instant for each in (*self.replay.commits, *self.replay.compactions)}
        timeline = read_timeline(self.owner._store)
        for each in timeline.writes():
            if each.time in known:
                continue
            if each.action == "commit":
                self.replay.compactions.append(CompactedAt(each.time, each.completion, self.with_base(each.time)))
            else:
                assert entries or is_alteration(self.owner, each), f"{each.name} was written by nobody"
                self.replay.commits.append(Committed(each.time, each.completion, entries, in_base))
        self.seen = set(self.names())

    def with_base(self, instant: str) -> frozenset[str]:
        """Partitions in which a base file of the instant lies."""
        return frozenset(each.parent.name for each in self.path.glob(f"?/*_{instant}.parquet"))

    def names(self) -> list[str]:
        return [path.name for path in (self.path / ".hoodie/timeline").iterdir()]

    def new(self, name: str) -> bool:
        return name not in getattr(self, "seen", ())


def put(transaction: hudi.Transaction, entries: Sequence[Entry]) -> None:
    """Upserts, then deletes: no key is in both. Columns that the table got since its creation say what ``v`` says."""
    schema = transaction._definition.schema
    for rows, call in (
        ([entry for entry in entries if entry.value is not None], transaction.upsert),
        ([entry for entry in entries if entry.value is None], transaction.delete),
    ):
        if rows:
            added = len(schema) - len(SCHEMA)
            columns = zip(*[(*entry.key, entry.ordering, *[entry.value] * (1 + added)) for entry in rows], strict=True)
            call(pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema))


def shown(scan: Any) -> dict[tuple[str, str], tuple[int, str]]:
    rows = scan.to_table().to_pylist()
    added = rows[0].keys() - set(SCHEMA.names) if rows else ()
    assert all(row[name] in (None, row["v"]) for row in rows for name in added), "a value of another column or row"
    found = {(row["p"], row["id"]): (row["n"], row["v"]) for row in rows}
    assert len(found) == len(rows), "a key twice"
    return found


def cancel(table: hudi.Table) -> None:
    for instant in table.plans:
        table.cancel_plan(instant)


def alter(table: hudi.Table) -> None:
    """Adds one column."""
    table.alter(Alteration(add={f"added_{len(table.schema)}": pa.string()}))


def is_alteration(table: hudi.Table, instant: Instant) -> bool:
    found = decode_commit(content_of(table._store, instant), instant.path)
    return (found.operation, found.files) == ("ALTER_SCHEMA", {})


def maintain(table: hudi.Table) -> None:
    """Until nothing is due; plans stay open, as they do until a compactor comes."""
    while table.maintain().more:
        pass


SERVICES: dict[str, Service] = {
    "plan": lambda table: table.plan_compaction(forced=True),
    "compact": lambda table: table.compact(),
    "cancel": cancel,
    "clean": lambda table: table.clean(),
    "archive": lambda table: table.archive(),
    "maintain": maintain,
    "alter": alter,
}


@pytest.mark.slow
def test_a_table_shows_what_was_committed_whatever_services_do_and_whichever_process_dies() -> None:
    run_state_machine_as_test(Living, settings=effort(60, 15))
