"""One table's slot work: instants, commits, offsets. Blocking, one step after the other, on a thread of its own.

Slots are not pipelined (rule C), so a table needs one thread and no more; what it does is asked for by the table's pure core
and answered as events.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from headgate_coordinator import events
from headgate_coordinator.events import Event
from headgate_coordinator.instructions import Commit, DropRound, IssueInstant, WinOffsets
from headgate_tables.commitlog.times import parse_time
from headgate_tables.errors import RetryLater
from headgate_tables.hudi import Table, Transaction

Work: TypeAlias = IssueInstant | Commit | DropRound | WinOffsets


@dataclass(frozen=True, slots=True)
class LastCommit:
    """What the newest commit with rows was, for ``status``. ``at_ms``: since when readers see it."""

    instant: str = ""
    at_ms: int = 0
    files: int = 0
    bytes: int = 0


class Committer:
    """``table``: owned by this process. ``report`` takes events, from the committer's thread. ``now_ms``: the wall clock."""

    def __init__(self, table: Table, now_ms: Callable[[], int], report: Callable[[Event], None]) -> None:
        self.last = LastCommit()
        self._table = table
        self._now_ms = now_ms
        self._report = report
        self._open: dict[tuple[int, int], Transaction] = {}
        self._log_files: Counter[tuple[str, str]] = Counter()

    @property
    def most_log_files(self) -> int:
        """That one file group got since this coordinator took the table: what a reader of it has to merge, and more."""
        return max(self._log_files.values(), default=0)

    def execute(self, work: Work) -> None:
        """Does it and reports. What was certainly not decided is reported as refused.

        Raises ReopenTable and OperatorNeeded: the table is not ours to write any more, or not before a person has acted.
        """
        match work:
            case IssueInstant():
                self._issue(work)
            case Commit():
                self._commit(work)
            case DropRound():
                self._drop(work.generation, work.round)
            case WinOffsets():
                self._win_offsets(work)

    def tidy(self) -> None:
        """Between rounds, when nothing waits: sweeps and folds what is due. What a busy store refuses is due again later."""
        try:
            self._table.tidy()
        except RetryLater:
            return

    def look_back(self) -> None:
        """What the newest commit was before this ownership, if the store answers."""
        try:
            commits = self._table.commits()
        except RetryLater:
            return
        if commits:
            self.last = LastCommit(commits[-1].instant, parse_time(commits[-1].completion))

    def _issue(self, work: IssueInstant) -> None:
        try:
            transaction = self._table.transaction(tidy=False)
            self._open[work.generation, work.round] = transaction
            transaction.announce()
        except RetryLater as error:
            self._report(events.CommitRefused(work.generation, work.round, str(error)))
            return
        self._report(events.InstantIssued(work.generation, work.round, transaction.instant))

    def _commit(self, work: Commit) -> None:
        try:
            if work.files:
                self._commit_files(work)
            else:
                self._commit_offsets(work)
        except RetryLater as error:
            self._report(events.CommitRefused(work.generation, work.round, str(error)))
            return
        self._report(events.Published(work.generation, work.round))

    def _commit_files(self, work: Commit) -> None:
        transaction = self._open[work.generation, work.round]
        if not transaction.statuses:  # they are there when an earlier try at this commit was refused
            transaction.add(work.files)
        result = transaction.commit(
            channels=self._records(work.channels),
            decided=lambda: self._report(events.SlotWon(work.generation, work.round)),
        )
        del self._open[work.generation, work.round]
        self._log_files.update((status.stat.partition, status.stat.file_id) for status in work.files)
        self.last = LastCommit(result.instant, self._now_ms(), result.files, result.bytes)

    def _commit_offsets(self, work: Commit) -> None:
        """Rule RO5: offsets alone publish no instant, and nothing at all writes nothing."""
        self._drop(work.generation, work.round)
        if work.channels:
            self._table.win_offsets(self._records(work.channels))
        self._report(events.SlotWon(work.generation, work.round))

    def _win_offsets(self, work: WinOffsets) -> None:
        try:
            self._table.win_offsets(self._records(work.channels))
        except RetryLater as error:
            self._report(events.OffsetsRefused(work.number, str(error)))
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

    def _records(self, channels: Mapping[str, tuple[int, int, str]]) -> dict[str, list[Any]]:
        now = self._now_ms()
        return {name: [*record, now] for name, record in channels.items()}


def forget_idle(table: Table, before_ms: int) -> None:
    """Channels whose last commit is older are forgotten (rule CH5). Before the core is made, so that no one holds them."""
    idle = [name for name, record in table.channels.items() if record[3] < before_ms]
    if idle:
        table.win_offsets({}, forget=idle)
