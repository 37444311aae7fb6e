"""One table's slot work: instants, commits, offsets. It blocks, on a thread of its own, one step after another.

Slots are not pipelined (rule C2), so one thread per table is enough. The table's pure core asks for the work, and the results go
back to it as events.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import assert_never

from headgate_coordinator.core import events, stuck_slices
from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.core.events import Event
from headgate_coordinator.core.instructions import AskLog, CommitCheckpoint, DropCheckpoint, IssueInstant, WinOffsets
from headgate_coordinator.core.operations import CompactionEvent, FinishPlan, FinishRefused, PlanClosed, PlanOpened
from headgate_coordinator.tables.outage import Outage
from headgate_coordinator.tables.passed import EpochPassedError
from headgate_coordinator.tables.slice_figures import read_slice_figures, stuck_loads
from headgate_coordinator.tables.work import Maintain, RunService, Work
from headgate_tables.errors import CorruptFileError, MissingFileError, RetryLater
from headgate_tables.face.log import ChannelRecord, parse_time
from headgate_tables.face.owner import Table
from headgate_tables.face.settings import TableSettings
from headgate_tables.face.transaction import Transaction

_SLOTS, _TIDYING, _MAINTENANCE, _OWNER = "slots", "tidying", "maintenance", "owner"
"""Kinds of work whose outages are kept apart: slots of checkpoints, offsets and plans; deleting and folding; planning, cleaning
and archiving; asking the log for the owner.
"""


@dataclass(slots=True)
class _Attempt:
    """``refused``: the store's error, empty after a success."""

    refused: str = ""


@dataclass(frozen=True, slots=True)
class LastCommit:
    """The newest commit with rows, for ``status``. ``at_ms``: when it became visible to readers."""

    instant: str = ""
    at_ms: int = 0
    files: int = 0
    bytes: int = 0


class Committer:
    """``table``: owned by this process. ``report`` gets events, on the committer's thread. ``now_ms``: the wall clock."""

    def __init__(self, table: Table, now_ms: Callable[[], int], report: Callable[[Event | CompactionEvent], None]) -> None:
        self.last_commit = LastCommit()
        self.settings: Mapping[str, str] = _changed(table.settings)
        self.more_to_maintain = False
        self.maintenance_alarm: StandingAlarm | None = None
        self.outage = Outage()
        self._in_doubt = False
        self._followed = 0
        self.alarms: Sequence[StandingAlarm] = ()
        self._plans: set[str] = set()
        self._table = table
        self._now_ms = now_ms
        self._report = report
        self._open: dict[tuple[int, int], Transaction] = {}
        self.plan_waits = False
        self._held: IssueInstant | None = None
        self.figures = read_slice_figures(table)

    def execute(self, work: Work) -> None:
        """Does the work and reports its events. Work that was certainly not decided is reported as refused.

        Raises ReopenTable and OperatorNeeded: this process may not write to the table any more, or not before an operator acts.
        """
        match work:
            case IssueInstant():
                self._issue(work)
            case CommitCheckpoint():
                self._commit(work)
            case DropCheckpoint():
                self._drop(work.generation, work.checkpoint)
            case WinOffsets():
                self._win_offsets(work)
            case AskLog(followed):
                self._in_doubt, self._followed = True, max(followed, self._followed)
            case RunService():
                work.run(self._table)
                self._look_at_plans()
            case Maintain():
                self._maintain()
            case FinishPlan():
                self._finish_plan(work)
            case _:
                assert_never(work)
        if self._held is not None and not self._open:
            held, self._held = self._held, None
            self._maintain()
            self._issue(held)
        if self._in_doubt:
            self._ask_log()

    def finish_with(self, work: RunService) -> None:
        """Rolls back all open transactions, then does this last work."""
        for generation, number in list(self._open):
            self._drop(generation, number)
        work.run(self._table)

    def tidy(self) -> None:
        """Sweeps and folds what is due, for times without waiting work. What a busy store refuses is due again later."""
        with self._attempt(_TIDYING):
            self._table.tidy(beside=True)

    def hand_over(self) -> None:
        """Spares the next owner what it would wait for, unless the store refuses that now."""
        with self._attempt(_TIDYING):
            self._table.hand_over()

    def load_past(self) -> None:
        """Loads the state before this ownership: open plans, and the newest commit."""
        self._look_at_plans()
        if (left := self._table.left_commit) is not None:
            self.last_commit = LastCommit(left.instant, parse_time(left.completion))

    def _maintain(self) -> None:
        """Does one step of maintenance. A step that a busy store refuses, or that waits for the table's listing, is due again
        later. A damaged file stops maintenance and raises an alarm; checkpoints go on.
        """
        self.more_to_maintain, self.maintenance_alarm, self.plan_waits = False, None, False
        if self._table.stages:
            # Without rows no checkpoint would notice a missing folder. Not on object stores, where the request costs money.
            self._table.check_there()
        if self.outage.affects(_SLOTS) and not self._takes_slots():
            return
        try:
            with self._attempt(_MAINTENANCE):
                step = self._table.maintain()
                self.plan_waits = step.waits
                self.more_to_maintain = step.more and bool(step.did)
        except (CorruptFileError, MissingFileError) as error:
            text = f"the table is not maintained: {error}"
            self.maintenance_alarm = StandingAlarm(AlarmKind.NOT_MAINTAINED, text)
        self._look_at_plans()

    def _takes_slots(self) -> bool:
        """Returns whether the store takes slots again, by winning one that changes nothing: after a failure no rows may come that
        would find out.
        """
        with self._attempt(_SLOTS) as attempt:
            self._table.win_offsets({})
        return not attempt.refused

    @contextmanager
    def _attempt(self, work: str) -> Iterator[_Attempt]:
        """Runs one step. RetryLater is not raised: it is an outage of this ``work``, until a step of the work succeeds."""
        attempt = _Attempt()
        try:
            yield attempt
        except RetryLater as error:
            self.outage.note_failure(work, error, self._now_ms())
            attempt.refused = str(error)
        else:
            self.outage.note_success(work)

    def _ask_log(self) -> None:
        """Checks in the log that this process still owns the table. If the store does not answer, the next work asks again.

        Raises DeposedError, and EpochPassedError when writers follow a later epoch although it does.
        """
        with self._attempt(_OWNER):
            self._table.check_owner()
            self._in_doubt = False
            if self._followed > self._table.epoch:
                raise EpochPassedError(self._table.epoch, self._followed)

    def _finish_plan(self, work: FinishPlan) -> None:
        """Finishes a plan. Results of a plan that is no longer open are dropped: it was cancelled (rule W5)."""
        with self._attempt(_SLOTS) as attempt:
            if work.instant in self._table.plans:
                self._table.finish_plan(work.instant, work.finished, work.dropped)
        if attempt.refused:
            self._report(FinishRefused(work.instant, attempt.refused))
            return
        self._look_at_plans(done=work.instant)

    def _look_at_plans(self, done: str = "") -> None:
        """Reports plans that have opened or closed since the last look. ``done``: the instant of a plan completed just now."""
        settings, plans = self._table.settings, self._table.plans
        self.settings = _changed(settings)
        for instant in sorted(self._plans - plans.keys()):
            self._report(PlanClosed(instant, done=instant == done))
        for instant in sorted(plans.keys() - self._plans):
            self._report(PlanOpened(instant, plans[instant].operations, settings.compaction_attempts))
        self._plans = set(plans)
        self._count_slices()

    def _count_slices(self, *, always: bool = False) -> None:
        """Reports the figures of slices if they have changed, or ``always``. Call it after any work that may change them."""
        figures, loads = read_slice_figures(self._table), stuck_loads(self._table)
        self.alarms = stuck_slices.alarms(self._table.name, loads, self._table.settings)
        if figures.counted and (always or figures != self.figures):
            self.figures = figures
            self._report(figures)

    def _issue(self, work: IssueInstant) -> None:
        """Issues an instant. A success does not end an outage, because it may have written no slot. When a compaction waits for a
        moment without open transactions, the younger checkpoint gets its instant behind it (rule DE5).
        """
        if self.plan_waits and self._open:
            self._held = work
            return
        try:
            transaction = self._table.transaction(tidy=False)
            self._open[work.generation, work.checkpoint] = transaction
            transaction.announce()
        except RetryLater as error:
            self.outage.note_failure(_SLOTS, error, self._now_ms())
            self._report(events.InstantRefused(work.generation, work.checkpoint, str(error)))
            return
        self._report(events.InstantIssued(work.generation, work.checkpoint, transaction.instant))

    def _commit(self, work: CommitCheckpoint) -> None:
        with self._attempt(_SLOTS) as attempt:
            if false := self._false_files(work):
                self._report(events.FilesRefused(work.generation, work.checkpoint, false))
                return
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

    def _false_files(self, work: CommitCheckpoint) -> Mapping[int, str]:
        """A slot that names a file which is not there could never be published (rule RO10).

        Raises TableGoneError, and DeposedError: a successor has moved the files of writers away (rule W2).
        """
        false = self._open[work.generation, work.checkpoint].find_false(work.files) if work.files else {}
        if false:
            self._table.check_there()
            self._table.check_owner()
        return false

    def _commit_files(self, work: CommitCheckpoint) -> None:
        transaction = self._open[work.generation, work.checkpoint]
        if not transaction.statuses:  # an earlier attempt at this commit that was refused has added them
            transaction.add(work.files)
        result = transaction.commit(
            channels=self._records(work.channels),
            on_durable=lambda: self._report(events.SlotWon(work.generation, work.checkpoint)),
        )
        del self._open[work.generation, work.checkpoint]
        self.last_commit = LastCommit(result.instant, self._now_ms(), result.files, result.bytes)

    def _commit_offsets(self, work: CommitCheckpoint) -> None:
        """Commits a checkpoint without files: offsets without an instant, or nothing at all (rule RO5)."""
        self._drop(work.generation, work.checkpoint)
        if work.channels:
            self._table.win_offsets(self._records(work.channels))
        self._report(events.SlotWon(work.generation, work.checkpoint))

    def _win_offsets(self, work: WinOffsets) -> None:
        with self._attempt(_SLOTS) as attempt:
            self._table.win_offsets(self._records(work.channels), work.forget)
        if attempt.refused:
            self._report(events.OffsetsRefused(work.number, attempt.refused))
            return
        self._report(events.OffsetsWon(work.number))

    def _drop(self, generation: int, number: int) -> None:
        if self._held == IssueInstant(generation, number):
            self._held = None
        transaction = self._open.pop((generation, number), None)
        if transaction is None:
            return
        try:
            transaction.rollback()
        except RetryLater:
            return  # the instant has ended; a sweep deletes the staged files that the store refused to delete now

    def _records(self, channels: Mapping[str, tuple[int, int, str]]) -> dict[str, ChannelRecord]:
        now = self._now_ms()
        return {name: ChannelRecord(*record, now) for name, record in channels.items()}


def _changed(settings: TableSettings) -> Mapping[str, str]:
    """Returns the settings that differ from their defaults, by key. Services of other versions need not know the others."""
    usual = TableSettings().to_texts()
    return {key: text for key, text in settings.to_texts().items() if text != usual[key]}
