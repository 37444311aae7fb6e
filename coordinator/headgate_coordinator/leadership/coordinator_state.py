"""What a coordinator knows: its tables, those of others, living coordinators. ``Elections`` writes it, the services read it.

It also passes on reports of writers to the tables that are owned here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.gauges import Figures
from headgate_coordinator.leadership.leases import NOBODY, Holder
from headgate_coordinator.streams.compactors import Compactors
from headgate_coordinator.streams.messages import refused
from headgate_coordinator.streams.writers import Writers, WriterSession
from headgate_coordinator.tables.adoptions import PendingAdoptions
from headgate_coordinator.tables.compacting import TableCompactions
from headgate_coordinator.tables.outage import Outage, lasting
from headgate_coordinator.tables.owned_table import OwnedTable
from headgate_proto.api.v1 import errors_pb2, tables_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.errors import from_tables, wire_error
from headgate_tables.errors import FixCall, OperatorNeeded, TableInGraceError, TablesError


@dataclass(frozen=True, slots=True)
class TableTrouble:
    """Why a table is not served: the last error, and when the first came, in ms since the epoch."""

    error: TablesError
    since_ms: int

    @property
    def quarantines(self) -> bool:
        """Whether retries are useless until an operator acts: a foreign writer, damage."""
        return isinstance(self.error, OperatorNeeded | FixCall) and not self.in_grace

    @property
    def in_grace(self) -> bool:
        """Whether the table is dropped, and can be brought back: that is as somebody wants it."""
        return isinstance(self.error, TableInGraceError)

    @property
    def alarm(self) -> StandingAlarm | None:
        """For operators; None when nothing is wrong."""
        if self.in_grace:
            return None
        kind, lasts = lasting(self.error, self.since_ms, otherwise=AlarmKind.NOT_SERVED)
        text = f"the table does not serve, {lasts}: {self.error}"
        return StandingAlarm(AlarmKind.QUARANTINED if self.quarantines else kind, text)


@dataclass(slots=True)
class CoordinatorState:
    """``table_names``: tables of the last successful listing of the store; ``listing_outage``: why listing fails now.

    ``owned``: tables that are served here. ``troubles``: why tables whose lease this coordinator holds are not served.
    ``holders``: of leases, as of Redis's last answer. ``alive``: coordinators in that answer; ``coordinators``: these, and those
    named shortly before. ``adoptions`` wait for the next try to open a table. ``redis_reachable``: None: not asked yet.
    """

    table_names: Sequence[str] = ()
    listing_outage: Outage = field(default_factory=lambda: Outage("the store's tables cannot be listed"))
    owned: dict[str, OwnedTable] = field(default_factory=dict)
    troubles: dict[str, TableTrouble] = field(default_factory=dict)
    holders: dict[str, Holder | None] = field(default_factory=dict)
    alive: Sequence[Holder] = ()
    coordinators: Sequence[Holder] = ()
    adoptions: PendingAdoptions = field(default_factory=PendingAdoptions)
    own: Holder = NOBODY
    redis_reachable: bool | None = None
    writers: Writers = field(init=False)
    compactors: Compactors = field(init=False)

    def __post_init__(self) -> None:
        self.writers = Writers(self)
        self.compactors = Compactors(self)

    def writer_joined(self, session: WriterSession) -> None:
        for table in self.owned.values():
            table.writer_joined(session)

    def writer_lost(self, session: WriterSession, why: str) -> None:
        for table in self.owned.values():
            table.writer_lost(session, why)

    def writer_leaving(self, session: WriterSession) -> None:
        for table in self.owned.values():
            table.writer_leaving(session)
        self.writers.release_if_free(session)

    def load_reported(self, session: WriterSession, table: str, uncommitted_bytes: int) -> None:
        if owned := self.owned.get(table):
            owned.load_reported(session, uncommitted_bytes)

    def table_reported(self, session: WriterSession, report: wire.TableReport) -> None:
        if owned := self.owned.get(report.table):
            owned.table_reported(session, report)
        elif report.HasField("open"):
            session.send(wire.ControlResponse(table=refused(report, self.not_served_error(report.table))))

    def operation_sources(self) -> Mapping[str, TableCompactions]:
        """The tables that are owned here, by name, for compactors."""
        return {name: owned.compactions for name, owned in self.owned.items()}

    def operation_source(self, table: str, epoch: int) -> TableCompactions | None:
        """The table, if it is owned here under that epoch."""
        owned = self.owned.get(table)
        return owned.compactions if owned is not None and owned.target.epoch == epoch else None

    def not_served_error(self, table: str) -> errors_pb2.Error:
        """The error for calls about a table that this coordinator does not serve."""
        trouble, holder = self.troubles.get(table), self.holders.get(table)
        if trouble is not None and trouble.in_grace:
            return from_tables(trouble.error)
        if trouble is not None and trouble.quarantines:
            return wire_error(
                errors_pb2.CODE_TABLE_QUARANTINED,
                "the table takes no rows until an operator has looked at it",
                "Ask the operators: `headgate status` says what was found, `headgate table adopt` makes it the table's own.",
            )
        if holder is not None and holder != self.own:
            return wire_error(
                errors_pb2.CODE_NOT_OWNER, "another coordinator owns the table", "Ask that one.", address=holder.address
            )
        return wire_error(
            errors_pb2.CODE_UNAVAILABLE, "no coordinator serves the table just now", "Open the channel again shortly."
        )

    def coordinator_addresses(self) -> Sequence[str]:
        """Addresses for services of living coordinators, this one first."""
        others = [holder for holder in self.coordinators if holder.address != self.own.address]
        return [each.cluster_address or each.address for each in ([self.own, *others] if self.own.address else others)]

    def figures(self) -> Figures:
        """What Prometheus gets at a scrape."""
        alarms = {name: [alarm.kind.value for alarm in owned.view.alarms] for name, owned in self.owned.items()}
        alarms |= {
            name: [alarm.kind.value]
            for name, trouble in self.troubles.items()
            if name not in self.owned and (alarm := trouble.alarm) is not None
        }
        if listing := self.listing_outage.alarm:
            alarms[""] = [listing.kind.value]
        tables = {name: owned.view.figures() for name, owned in self.owned.items()}
        return Figures(len(self.writers), len(self.compactors), bool(self.redis_reachable), tables, alarms)

    def cluster_address_of(self, address: str) -> str | None:
        """Where services reach the other living coordinator that clients reach at ``address``; None if there is none."""
        for each in self.coordinators:
            if each.address == address and each.address != self.own.address:
                return each.cluster_address or each.address
        return None

    def table_status(self, table: str) -> tables_pb2.TableStatus:
        """One table's status, as far as this coordinator knows it."""
        owner = self.holders.get(table)
        if owned := self.owned.get(table):
            return owned.view.status(self.own.name, max(self.writers.lags_of(table).values(), default=0))
        if trouble := self.troubles.get(table):
            state = "dropped" if trouble.in_grace else "quarantined" if trouble.quarantines else "unowned"
            alarms = [trouble.alarm.text] if trouble.alarm is not None else []
            return tables_pb2.TableStatus(name=table, state=state, owner=self.own.name, alarms=alarms)
        if owner is not None and owner != self.own:
            return tables_pb2.TableStatus(name=table, state="elsewhere", owner=owner.name)
        return tables_pb2.TableStatus(name=table, state="unowned")
