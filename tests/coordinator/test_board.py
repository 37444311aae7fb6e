"""What a coordinator answers from what it knows: of its tables, of those of others, of those that do not serve."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from headgate_coordinator.leadership.board import Board, Trouble
from headgate_coordinator.leadership.leases import Holder
from headgate_coordinator.streams.messages import Address
from headgate_coordinator.streams.writers import Session
from headgate_coordinator.tables.owned_table import OwnedTable
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_tables.errors import FixCall, ForeignWriterError, StoreUnavailableError, TablesError

OWN, OTHER = Holder("own", "1", "own:1"), Holder("other", "2", "other:1")
SINCE_MS = 1_763_820_202_000


@dataclass
class Owned:
    """As much of an ``OwnedTable`` as the board needs."""

    address: Any
    compactions: object = field(default_factory=object)

    def joined(self, session: Session) -> None: ...

    def leaving(self, session: Session) -> None:
        session.pending.add(self.address.table)


@dataclass
class Writer:
    """As much of a session."""

    sent: list[wire.ControlResponse] = field(default_factory=list)

    def send(self, message: wire.ControlResponse) -> None:
        self.sent.append(message)


def board(**known: Any) -> Board:
    found = Board(own=OWN, **known)
    address = Address("mine", 3, "", "", drop_beaten=True, restored="")
    found.owned["mine"] = cast(OwnedTable, Owned(address))
    return found


def trouble(error: TablesError) -> dict[str, Trouble]:
    return {"t": Trouble(error, SINCE_MS)}


def test_compactors_reach_a_table_under_its_present_epoch_only() -> None:
    found = board()
    assert found.workplace("mine", 3) is found.owned["mine"].compactions
    assert [found.workplace("mine", epoch) for epoch in (2, 4)] == [None, None]
    assert found.workplace("unknown", 3) is None


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (ForeignWriterError("another program wrote", fix="look"), "quarantined"),
        (FixCall("it makes no sense", fix="correct it"), "quarantined"),
        (StoreUnavailableError("busy", fix="wait"), "unowned"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_table_is_quarantined_by_what_a_person_has_to_act_on_and_by_nothing_that_may_pass(
    error: TablesError, state: str
) -> None:
    found = board(troubles=trouble(error))
    status = found.status("t")
    assert (status.state, status.owner) == (state, "own")
    assert str(error) in status.alarms[0]
    quarantined = found.why_not_here("t").code == errors_pb2.CODE_TABLE_QUARANTINED
    assert quarantined == (state == "quarantined")


def test_who_opens_a_channel_of_a_table_that_is_elsewhere_is_sent_there_and_never_to_us() -> None:
    found = board(holders={"t": OTHER, "opening": OWN, "free": None})
    there = found.why_not_here("t")
    assert (there.code, there.address) == (errors_pb2.CODE_NOT_OWNER, "other:1")
    for table in ("opening", "free", "unknown"):
        assert found.why_not_here(table).code == errors_pb2.CODE_UNAVAILABLE
    assert (found.status("t").state, found.status("t").owner) == ("elsewhere", "other")
    assert [found.status(table).state for table in ("opening", "free")] == ["unowned", "unowned"]


def test_an_open_of_a_table_that_is_not_here_is_answered_and_other_reports_are_not() -> None:
    found, writer = board(holders={"t": OTHER}), Writer()
    session = cast(Session, writer)
    found.reported(session, wire.TableReport(table="t", broken=wire.Broken(why="its disk is full")))
    assert writer.sent == []
    found.reported(session, wire.TableReport(table="t", open=wire.OpenRequest(request=4, channel="c")))
    (answer,) = writer.sent
    assert (answer.table.open_refused.request, answer.table.open_refused.error.address) == (4, "other:1")


def test_members_are_all_coordinators_each_once_and_this_one_first() -> None:
    assert board(coordinators=[OTHER, OWN]).members() == ["own:1", "other:1"]
    assert board().members() == ["own:1"]


def leave(found: Board, process: str) -> Session:
    """A writer that has joined and says that it leaves."""
    session = found.writers.join(process, f"{process}:1")
    found.writers.take(session, wire.ControlRequest(leave=wire.Leave()))
    return session


def is_told(session: Session) -> bool:
    """Whether one message waits for it, which says that it is free."""
    if session._queue.empty():
        return False
    message = session._queue.get_nowait()
    assert message is not None
    assert session._queue.empty()
    return message.HasField("released")


async def test_a_writer_that_leaves_is_free_once_when_the_last_table_has_let_it_go() -> None:
    found = board()
    found.owned["other"] = cast(OwnedTable, Owned(Address("other", 1, "", "", drop_beaten=True)))
    stays, leaves = found.writers.join("stays", "stays:1"), leave(found, "leaves")
    assert not is_told(leaves)
    found.writers.released("mine", "stays")
    found.writers.released("other", "stays")
    assert not is_told(leaves), "another was let go"
    found.writers.released("mine", "leaves")
    assert not is_told(leaves), "the other table needs it still"
    found.writers.released("other")
    assert is_told(leaves)
    found.writers.released("mine")
    assert not is_told(leaves)
    assert not is_told(stays)


async def test_a_writer_that_leaves_is_free_at_once_where_no_table_is() -> None:
    assert is_told(leave(Board(own=OWN), "leaves"))
