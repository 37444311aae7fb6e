"""What a coordinator answers from what it knows: of its tables, of those of others, of those that do not serve."""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.gauges import TableFigures
from headgate_coordinator.leadership.coordinator_state import CoordinatorState, TableTrouble
from headgate_coordinator.leadership.leases import Holder
from headgate_coordinator.leadership.troubles import UnforeseenError
from headgate_coordinator.streams.messages import OrderTarget
from headgate_coordinator.streams.writers import WriterSession
from headgate_coordinator.tables.owned_table import OwnedTable
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.errors import RpcError
from headgate_tables.errors import (
    FixCall,
    ForeignWriterError,
    StoreDeniedError,
    StoreUnavailableError,
    TableGoneError,
    TablesError,
)

OWN, OTHER = Holder("own", "1", "own:1"), Holder("other", "2", "other:1")
SINCE_MS = 1_763_820_202_000


class View:
    """As much of a ``TableView``."""

    alarms = (StandingAlarm(AlarmKind.NO_WRITER, "no writer"), StandingAlarm(AlarmKind.CLOCK, "it is ahead"))

    def figures(self) -> TableFigures:
        return TableFigures(uncommitted_bytes=7)


@dataclass
class Owned:
    """As much of an ``OwnedTable`` as the state needs."""

    target: Any
    compactions: object = field(default_factory=object)
    view: View = field(default_factory=View)

    def writer_joined(self, session: WriterSession) -> None: ...

    def writer_leaving(self, session: WriterSession) -> None:
        session.pending.add(self.target.table)


@dataclass
class Writer:
    """As much of a session."""

    sent: list[wire.ControlResponse] = field(default_factory=list)

    def send(self, message: wire.ControlResponse) -> None:
        self.sent.append(message)


def coordinator_state(**known: Any) -> CoordinatorState:
    found = CoordinatorState(**{"own": OWN, **known})
    target = OrderTarget("mine", 3, "", "", restored="")
    found.owned["mine"] = cast(OwnedTable, Owned(target))
    return found


def trouble(error: TablesError) -> dict[str, TableTrouble]:
    return {"t": TableTrouble(error, SINCE_MS)}


def test_compactors_reach_a_table_under_its_present_epoch_only() -> None:
    found = coordinator_state()
    assert found.operation_source("mine", 3) is found.owned["mine"].compactions
    assert [found.operation_source("mine", epoch) for epoch in (2, 4)] == [None, None]
    assert found.operation_source("unknown", 3) is None


@pytest.mark.parametrize(
    ("error", "state", "alarm"),
    [
        (ForeignWriterError("another program wrote", fix="look"), "quarantined", AlarmKind.QUARANTINED),
        (FixCall("it makes no sense", fix="correct it"), "quarantined", AlarmKind.QUARANTINED),
        (StoreUnavailableError("busy", fix="wait"), "unowned", AlarmKind.STORE_SILENT),
        (TableGoneError("no folder", fix="mount it"), "unowned", AlarmKind.FOLDER_GONE),
        (UnforeseenError("odd", fix="report it"), "unowned", AlarmKind.NOT_SERVED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_table_is_quarantined_by_what_a_person_has_to_act_on_and_by_nothing_that_may_pass(
    error: TablesError, state: str, alarm: AlarmKind
) -> None:
    found = coordinator_state(troubles=trouble(error))
    assert found.figures().alarms["t"] == [alarm.value]
    status = found.table_status("t")
    assert (status.state, status.owner) == (state, "own")
    assert str(error) in status.alarms[0]
    quarantined = found.not_served_error("t").code == errors_pb2.CODE_TABLE_QUARANTINED
    assert quarantined == (state == "quarantined")


def test_who_opens_a_channel_of_a_table_that_is_elsewhere_is_sent_there_and_never_to_us() -> None:
    found = coordinator_state(holders={"t": OTHER, "opening": OWN, "free": None})
    there = found.not_served_error("t")
    assert (there.code, there.address) == (errors_pb2.CODE_NOT_OWNER, "other:1")
    for table in ("opening", "free", "unknown"):
        assert found.not_served_error(table).code == errors_pb2.CODE_UNAVAILABLE
    assert (found.table_status("t").state, found.table_status("t").owner) == ("elsewhere", "other")
    assert [found.table_status(table).state for table in ("opening", "free")] == ["unowned", "unowned"]


def test_an_open_of_a_table_that_is_not_here_is_answered_and_other_reports_are_not() -> None:
    found, writer = coordinator_state(holders={"t": OTHER}), Writer()
    session = cast(WriterSession, writer)
    found.table_reported(session, wire.TableReport(table="t", broken=wire.Broken(why="its disk is full")))
    assert writer.sent == []
    found.table_reported(session, wire.TableReport(table="t", open=wire.OpenRequest(request=4, channel="c")))
    (answer,) = writer.sent
    assert (answer.table.open_refused.request, answer.table.open_refused.error.address) == (4, "other:1")


def test_members_are_all_coordinators_each_once_and_this_one_first() -> None:
    assert coordinator_state(coordinators=[OTHER, OWN]).coordinator_addresses() == ["own:1", "other:1"]
    assert coordinator_state().coordinator_addresses() == ["own:1"]


def test_members_are_named_where_services_reach_them() -> None:
    own, other = replace(OWN, cluster_address="own:2"), replace(OTHER, cluster_address="other:2")
    assert coordinator_state(own=own, coordinators=[other, own]).coordinator_addresses() == ["own:2", "other:2"]


@pytest.mark.parametrize("identity", ["b", ""])
@pytest.mark.parametrize(
    ("process", "address", "exchange"), [("1", "b:1", "b:2"), ("2", "a:1", "b:2"), ("2", "b:1", "a:2"), ("2", "a:2", "b:2")]
)
def test_a_writer_cannot_take_the_place_of_another_identity(identity: str, process: str, address: str, exchange: str) -> None:
    """Rule RO8 ends an older stream of a process, or of its address: with a certificate of its own each writer has its place."""
    writers = CoordinatorState(own=OWN).writers
    there = writers.add_writer("1", "a:1", "a:2", "a")
    with pytest.raises(RpcError, match="another writer: a"):
        writers.add_writer(process, address, exchange, identity)
    assert list(writers) == [there]
    assert there.ended is None
    back = writers.add_writer(process, address, exchange, "a")
    assert list(writers) == [back]
    assert there.ended is not None


def leave(found: CoordinatorState, process: str) -> WriterSession:
    """A writer that has joined and says that it leaves."""
    session = found.writers.add_writer(process, f"{process}:1")
    found.writers.handle_writer_message(session, wire.ControlRequest(leave=wire.Leave()))
    return session


def is_told(session: WriterSession) -> bool:
    """Whether one message waits for it, which says that it is free."""
    if session._queue.empty():
        return False
    message = session._queue.get_nowait()
    assert message is not None
    assert session._queue.empty()
    return message.HasField("released")


async def test_a_writer_that_leaves_is_free_once_when_the_last_table_has_let_it_go() -> None:
    found = coordinator_state()
    found.owned["other"] = cast(OwnedTable, Owned(OrderTarget("other", 1, "", "")))
    stays, leaves = found.writers.add_writer("stays", "stays:1"), leave(found, "leaves")
    assert not is_told(leaves)
    found.writers.note_detached("mine", "stays")
    found.writers.note_detached("other", "stays")
    assert not is_told(leaves), "another was let go"
    found.writers.note_detached("mine", "leaves")
    assert not is_told(leaves), "the other table needs it still"
    found.writers.note_detached("other")
    assert is_told(leaves)
    found.writers.note_detached("mine")
    assert not is_told(leaves)
    assert not is_told(stays)


async def test_a_writer_that_leaves_is_free_at_once_where_no_table_is() -> None:
    assert is_told(leave(CoordinatorState(own=OWN), "leaves"))


def test_prometheus_gets_the_figures_of_owned_tables_and_all_alarms() -> None:
    found = coordinator_state(troubles=trouble(TableGoneError("no folder", fix="mount it")), redis_reachable=True)
    found.listing_outage.note_failure("listing", StoreDeniedError("403", fix="Renew the token."), SINCE_MS)
    figures = found.figures()
    assert (figures.writers, figures.compactors, figures.redis_reachable) == (0, 0, True)
    assert figures.tables == {"mine": TableFigures(uncommitted_bytes=7)}
    assert figures.alarms == {"mine": ["no_writer", "clock"], "t": ["folder_gone"], "": ["store_denied"]}
