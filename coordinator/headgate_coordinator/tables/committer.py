"""One table's slot work: instants, commits, offsets. Blocking, one step after the other, on a thread of its own.

Slots are not pipelined (rule C2), so a table needs one thread and no more; what it does is asked for by the table's pure core
and answered as events.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import assert_never

from headgate_coordinator.core import events, stuck_slices
from headgate_coordinator.core.events import Event
from headgate_coordinator.core.instructions import AskLog, Commit, DropCheckpoint, IssueInstant, WinOffsets
from headgate_coordinator.core.operations import CompactionEvent, FinishPlan, FinishRefused, PlanClosed, PlanOpened
from headgate_coordinator.tables.outage import Outage
from headgate_coordinator.tables.work import Maintain, RunService, Work
from headgate_tables.commitlog.records import ChannelRecord
from headgate_tables.commitlog.times import parse_time
from headgate_tables.errors import CorruptFileError, MissingFileError, RetryLater
from headgate_tables.face.owner import Ownership, Table, Transaction, Upkeep
from headgate_tables.face.settings import TableSettings

_SLOTS, _TIDYING, _MAINTENANCE, _OWNER = "slots", "tidying", "maintenance", "owner"
"""What can fail by itself: checkpoints, offsets and plans; what is deleted and folded; what is planned, cleaned and archived;
asking who owns the table.
"""


@dataclass(slots=True)
class _Attempt:
    """``refused``: what the store said; empty: it worked."""

    refused: str = ""


@dataclass(frozen=True, slots=True)
class LastCommit:
    """What the newest commit with rows was, for ``status``. ``at_ms``: since when readers see it."""

    instant: str = ""
    at_ms: int = 0
    files: int = 0
    bytes: int = 0


class Committer:
    """``table``: owned by this process. ``report`` takes events, from the committer's thread. ``now_ms``: the wall clock."""

    def __init__(self, table: Table, now_ms: Callable[[], int], report: Callable[[Event | CompactionEvent], None]) -> None:
        self.last_commit = LastCommit()
        self.settings: Mapping[str, str] = {}
        self.more_to_maintain = False
        self.maintenance_alarm = ""
        self.outage = Outage()
        self._in_doubt = False
        self.alarms: Sequence[str] = ()
        self._plans: set[str] = set()
        self._table = table
        self._now_ms = now_ms
        self._report = report
        self._open: dict[tuple[int, int], Transaction] = {}
        self.figures = figures_of(table)

    def execute(self, work: Work) -> None:
        """Does it and reports. What was certainly not decided is reported as refused.

        Raises ReopenTable and OperatorNeeded: the table is not ours to write any more, or not before a person has acted.
        """
        match work:
            case IssueInstant():
                self._issue(work)
            case Commit():
                self._commit(work)
            case DropCheckpoint():
                self._drop(work.generation, work.checkpoint)
            case WinOffsets():
                self._win_offsets(work)
            case AskLog():
                self._in_doubt = True
            case RunService():
                work.run(self._table)
                self._look_at_plans()
            case Maintain():
                self._maintain()
            case FinishPlan():
                self._finish_plan(work)
            case _:
                assert_never(work)
        if self._in_doubt:
            self._ask_log()

    def finish_with(self, work: RunService) -> None:
        """Nothing comes after it: transactions that are open still are given up first."""
        for generation, number in list(self._open):
            self._drop(generation, number)
        work.run(self._table)

    def tidy(self) -> None:
        """Between checkpoints, when nothing waits: sweeps and folds what is due. What a busy store refuses is due again later."""
        with self._attempt(_TIDYING):
            self._table.tidy()

    def load_past(self) -> None:
        """What there was before this ownership: open plans, and the newest commit if the store answers. Maintenance tells of an
        instant that is lost.
        """
        self._look_at_plans()
        try:
            commits = self._table.commits()
        except (RetryLater, MissingFileError):
            return
        if commits:
            self.last_commit = LastCommit(commits[-1].instant, parse_time(commits[-1].completion))

    def _maintain(self) -> None:
        """What a busy store refuses is due again later, and so is what waits for the table to be listed. A damaged file
        keeps from services, and says so; rows go on being committed.
        """
        self.more_to_maintain, self.maintenance_alarm = False, ""
        if self._table.stages:
            # Nobody may send rows. On an object store the look has a price, and a checkpoint looks anyway.
            self._table.check_there()
        if self.outage.affects(_SLOTS) and not self._takes_slots():
            return
        try:
            with self._attempt(_MAINTENANCE):
                step = self._table.maintain()
                self.more_to_maintain = step.more and bool(step.did)
        except (CorruptFileError, MissingFileError) as error:
            self.maintenance_alarm = f"the table is not maintained: {error}"
        self._look_at_plans()

    def _takes_slots(self) -> bool:
        """After a failure nobody may send rows any more; then a slot that changes nothing tells whether the store is back."""
        with self._attempt(_SLOTS) as attempt:
            self._table.win_offsets({})
        return not attempt.refused

    @contextmanager
    def _attempt(self, work: str) -> Iterator[_Attempt]:
        """One step. What a busy store refuses is not raised: an outage of this ``work`` lasts until a step of it succeeds."""
        attempt = _Attempt()
        try:
            yield attempt
        except RetryLater as error:
            self.outage.note_failure(work, error, self._now_ms())
            attempt.refused = str(error)
        else:
            self.outage.note_success(work)

    def _ask_log(self) -> None:
        """A store that does not answer is asked again behind the next work, which comes at each service interval."""
        with self._attempt(_OWNER):
            self._table.check_owner()
            self._in_doubt = False

    def _finish_plan(self, work: FinishPlan) -> None:
        """A plan that is not open any more was cancelled, and its results count for nothing (rule W5)."""
        with self._attempt(_SLOTS) as attempt:
            if work.instant in self._table.plans:
                self._table.finish_plan(work.instant, work.finished, work.dropped)
        if attempt.refused:
            self._report(FinishRefused(work.instant, attempt.refused))
            return
        self._look_at_plans(done=work.instant)

    def _look_at_plans(self, done: str = "") -> None:
        """Tells which plans are open that were not, and the other way round. ``done``: one that was completed just now."""
        settings, plans = self._table.settings, self._table.plans
        self.settings = _changed(settings)
        for instant in sorted(self._plans - plans.keys()):
            self._report(PlanClosed(instant, done=instant == done))
        for instant in sorted(plans.keys() - self._plans):
            self._report(PlanOpened(instant, plans[instant].operations, settings.compaction_attempts))
        self._plans = set(plans)
        self._count_slices()

    def _count_slices(self, *, always: bool = False) -> None:
        """Behind everything that may have changed them; ``always``: also when they are as they were."""
        figures, loads = figures_of(self._table), stuck_loads(self._table)
        self.alarms = [stuck_slices.alarm(self._table.name, each, self._table.settings) for each in loads]
        if figures.counted and (always or figures != self.figures):
            self.figures = figures
            self._report(figures)

    def _issue(self, work: IssueInstant) -> None:
        """One that works ends no outage: it may have written no slot."""
        try:
            transaction = self._table.transaction(tidy=False)
            self._open[work.generation, work.checkpoint] = transaction
            transaction.announce()
        except RetryLater as error:
            self.outage.note_failure(_SLOTS, error, self._now_ms())
            self._report(events.InstantRefused(work.generation, work.checkpoint, str(error)))
            return
        self._report(events.InstantIssued(work.generation, work.checkpoint, transaction.instant))

    def _commit(self, work: Commit) -> None:
        with self._attempt(_SLOTS) as attempt:
            if work.files:
                self._commit_files(work)
            else:
                self._commit_offsets(work)
        if attempt.refused:
            self._report(events.CommitRefused(work.generation, work.checkpoint, attempt.refused))
            return
        self._report(events.Published(work.generation, work.checkpoint))
        if work.files:
            self._count_slices(always=True)

    def _commit_files(self, work: Commit) -> None:
        transaction = self._open[work.generation, work.checkpoint]
        if not transaction.statuses:  # they are there when an earlier try at this commit was refused
            transaction.add(work.files)
        result = transaction.commit(
            channels=self._records(work.channels),
            decided=lambda: self._report(events.SlotWon(work.generation, work.checkpoint)),
        )
        del self._open[work.generation, work.checkpoint]
        self.last_commit = LastCommit(result.instant, self._now_ms(), result.files, result.bytes)

    def _commit_offsets(self, work: Commit) -> None:
        """Rule RO5: offsets alone publish no instant, and nothing at all writes nothing."""
        self._drop(work.generation, work.checkpoint)
        if work.channels:
            self._table.win_offsets(self._records(work.channels))
        self._report(events.SlotWon(work.generation, work.checkpoint))

    def _win_offsets(self, work: WinOffsets) -> None:
        with self._attempt(_SLOTS) as attempt:
            self._table.win_offsets(self._records(work.channels))
        if attempt.refused:
            self._report(events.OffsetsRefused(work.number, attempt.refused))
            return
        self._report(events.OffsetsWon(work.number))

    def _drop(self, generation: int, number: int) -> None:
        transaction = self._open.pop((generation, number), None)
        if transaction is None:
            return
        try:
            transaction.rollback()
        except RetryLater:
            return  # the instant has ended; staged files that the store would not delete now go with it in a sweep

    def _records(self, channels: Mapping[str, tuple[int, int, str]]) -> dict[str, ChannelRecord]:
        now = self._now_ms()
        return {name: ChannelRecord(*record, now) for name, record in channels.items()}


def _changed(settings: TableSettings) -> Mapping[str, str]:
    """By key, those that are not as they come: services of other versions need not know the others."""
    usual = TableSettings().texts()
    return {key: text for key, text in settings.texts().items() if text != usual[key]}


def figures_of(table: Table) -> events.SliceFigures:
    """The fullest slices as the table's handle knows them, without I/O, and what its settings allow."""
    settings, figures = table.settings, table.slice_figures()
    limits = (settings.max_log_files, settings.max_log_bytes)
    loads = stuck_loads(table)
    refused = stuck_slices.refused_slices(table.name, loads, settings)
    if figures is None:
        return events.SliceFigures(0, 0, *limits, counted=False, refused=refused, stuck=len(loads))
    return events.SliceFigures(figures.log_files, figures.log_bytes, *limits, refused=refused, stuck=len(loads))


def stuck_loads(table: Upkeep) -> list[stuck_slices.StuckLoad]:
    """Slices that cannot be compacted, by name, with what waits in them."""
    found = ((each, table.figures_of(each)) for each in table.stuck)
    return [stuck_slices.StuckLoad(each, *((f.log_files, f.log_bytes) if f else (0, 0))) for each, f in found]


def forget_idle_channels(table: Ownership, before_ms: int) -> None:
    """Channels whose last commit is older are forgotten (rule CH5). Before the core is made, so that no one holds them."""
    idle = [name for name, record in table.channels.items() if record.time < before_ms]
    if idle:
        table.win_offsets({}, forget=idle)
