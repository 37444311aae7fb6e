"""Who gets which operation, and what counts of what compactors say: sessions and tables alone, without streams."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate_coordinator.core.operations import Attempt
from headgate_coordinator.streams.compactors import Compactors, CompactorSession
from headgate_proto.cluster.v1 import compaction_pb2 as wire


@dataclass
class Table:
    """``waiting``: operations that it would hand out; ``told``: what came of compactors, in order."""

    name: str
    waiting: int = 0
    compactors: Compactors | None = None
    told: list[tuple[str, str]] = field(default_factory=list)
    back_when_lost: bool = False

    @property
    def wants_compactor(self) -> bool:
        return self.waiting > 0

    def offer_capacity(self, session: CompactorSession) -> None:
        assert self.compactors is not None
        self.waiting -= 1
        self.told.append(("offered", session.process))
        self.compactors.run_attempt(session, wire.RunAttempt(attempt=attempt(self.name, len(self.told))))

    def attempt_reported(self, session: CompactorSession, attempt: Attempt, report: wire.WorkRequest) -> None:
        self.told.append((report.WhichOneof("message") or "", session.process))

    def attempt_progressed(self, session: CompactorSession, attempt: Attempt, progress: wire.AttemptProgress) -> None:
        self.told.append(("progressed", session.process))

    def compactor_lost(self, session: CompactorSession) -> None:
        self.told.append(("lost", session.process))
        self.waiting += self.back_when_lost


@dataclass
class Tables:
    tables: Mapping[str, Table]

    def operation_sources(self) -> Mapping[str, Table]:
        return self.tables

    def operation_source(self, table: str, epoch: int) -> Table | None:
        return self.tables.get(table) if epoch == 1 else None


def attempt(table: str, operation: int = 1) -> wire.Attempt:
    return wire.Attempt(table=table, epoch=1, instant="1", operation=operation, number=1)


def compactors(*tables: Table) -> Compactors:
    found = Compactors(Tables({table.name: table for table in tables}))
    for table in tables:
        table.compactors = found
    return found


def ready(found: Compactors, session: CompactorSession, capacity: int) -> None:
    found.handle_compactor_message(session, wire.WorkRequest(ready=wire.Ready(operations=capacity)))


def finished(found: Compactors, session: CompactorSession, done: wire.Attempt) -> None:
    found.handle_compactor_message(session, wire.WorkRequest(finished=wire.AttemptFinished(attempt=done)))


def sent(session: CompactorSession) -> list[str]:
    """What it was told, by kind."""
    kinds = []
    while not session._queue.empty():
        message = session._queue.get_nowait()
        kinds.append((message and message.WhichOneof("message")) or "end")
    return kinds


def test_a_compactor_gets_as_much_as_it_has_room_for() -> None:
    table = Table("t", waiting=5)
    found = compactors(table)
    ready(found, session := found.add_compactor("one", "host"), 2)
    assert sent(session) == ["run", "run"]
    assert table.waiting == 3


def test_the_compactor_with_most_room_is_first() -> None:
    table = Table("t")
    found = compactors(table)
    for name, capacity in (("small", 1), ("large", 3)):
        ready(found, found.add_compactor(name, "host"), capacity)
    table.waiting = 3
    found.hand_out_operations()
    assert [process for _, process in table.told] == ["large", "large", "small"]


def test_each_table_gets_one_compactor_before_any_gets_its_second() -> None:
    one, other = Table("a", waiting=4), Table("b", waiting=4)
    found = compactors(one, other)
    ready(found, found.add_compactor("one", "host"), 4)
    assert (one.waiting, other.waiting) == (2, 2)


def test_one_that_leaves_gets_nothing_more_and_is_released_when_its_last_attempt_is_over() -> None:
    table = Table("t", waiting=2)
    found = compactors(table)
    ready(found, session := found.add_compactor("one", "host"), 2)
    found.handle_compactor_message(session, wire.WorkRequest(leave=wire.CompactorLeave()))
    assert sent(session) == ["run", "run"]
    finished(found, session, attempt("t", 1))
    table.waiting = 1
    ready(found, session, 1)
    assert sent(session) == []
    found.drop_attempt("one", attempt("t", 2))
    assert sent(session) == ["drop", "released"]
    found.drop_attempt("one", attempt("t", 2))
    assert sent(session) == [], "it is not there any more"


def test_what_a_lost_compactor_had_goes_to_who_has_room() -> None:
    table = Table("t", waiting=1, back_when_lost=True)
    found = compactors(table)
    ready(found, first := found.add_compactor("one", "host"), 1)
    ready(found, second := found.add_compactor("two", "host"), 1)
    found.remove_compactor(first, "it fell silent")
    assert table.told == [("offered", "one"), ("lost", "one"), ("offered", "two")]
    assert sent(second) == ["run"]
    assert [session.process for session in found] == ["two"]


def test_a_compactor_that_comes_back_is_lost_first_and_of_its_older_stream_nothing_counts() -> None:
    table = Table("t", waiting=1)
    found = compactors(table)
    ready(found, older := found.add_compactor("one", "host"), 1)
    newer = found.add_compactor("one", "host")
    assert older.ended is not None
    assert table.told == [("offered", "one"), ("lost", "one")]
    finished(found, older, attempt("t"))
    found.remove_compactor(older, "its stream ended")
    assert table.told == [("offered", "one"), ("lost", "one")]
    assert found.get("one") is newer
    table.waiting = 1
    ready(found, newer, 1)
    assert table.told[-1] == ("offered", "one")


def test_reports_reach_the_table_under_the_epoch_that_they_name() -> None:
    table = Table("t")
    found = compactors(table)
    session = found.add_compactor("one", "host")
    progress = wire.AttemptProgress(attempt=attempt("t"))
    found.handle_compactor_message(session, wire.WorkRequest(heartbeat=wire.AttemptsHeartbeat(attempts=[progress])))
    finished(found, session, attempt("t"))
    old = attempt("t")
    old.epoch = 0
    finished(found, session, old)
    assert table.told == [("progressed", "one"), ("finished", "one")]
