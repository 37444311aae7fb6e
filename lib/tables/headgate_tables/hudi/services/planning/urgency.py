"""What a file slice costs its readers, and when that makes it due for compaction. Pure: settings and times are arguments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headgate_tables.commitlog.times import format_time
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.services.retention.archiving import straddles
from headgate_tables.hudi.view import FileSlice

SMALL_LOGS = 8 << 20
"""Log bytes below which read amplification makes nothing due: a reader pays for the files of such a slice, not for its bytes.
Smaller: slices of a few kilobytes are rewritten with every commit (test_tiny_slices_wait_for_the_number_of_their_commits).
"""
NEAR_LIMIT = 0.4
"""Share of the backpressure limits from which a slice is compacted first; from half of them on, checkpoints are stretched."""
NEARLY = 0.85
"""Share of the delta commits that make a slice due from which it joins a plan that is made for others. By default that is a bunch
before (``next_steps.BUNCH``): what does not join is not due before the next plan may be made, so readers never find more logs for
the waiting. Smaller: fewer plans, and more bytes written."""


class Load(NamedTuple):
    """The logs of one slice: delta commits, files, bytes, the oldest instant; bytes and instant of its base, "" for a slice
    without a base file.
    """

    commits: int
    files: int
    bytes: int
    oldest: str
    base_instant: str
    base_size: int

    @property
    def straddler(self) -> str:
        """The oldest log that straddles, by its instant, or "": archiving waits until the slice is compacted."""
        return self.oldest if self.files and straddles(self.oldest, self.base_instant) else ""


class Urgency(NamedTuple):
    """Greater is worse. ``rank`` 2: near the backpressure limits; 1: keeps instants from being archived; 0: only due; -1: not
    due, and joins a plan for others.
    """

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Rules:
    """``aged``: a slice with an older log is due by time. ``overdue``: one with an older straddling log is due for archiving."""

    settings: TableSettings
    aged: str
    overdue: str

    @classmethod
    def at(cls, settings: TableSettings, now: int, overdue: str) -> "Rules":
        """``now`` in milliseconds; ``overdue`` from ``overdue_since``."""
        return cls(settings, format_time(max(0, now - int(settings.compaction_seconds * 1000))), overdue)

    def urgency(self, load: Load) -> Urgency | None:
        """None when the slice is not due."""
        if not load.files:
            return None
        settings = self.settings
        pressure = max(load.files / settings.max_log_files, load.bytes / settings.max_log_bytes)
        if pressure >= NEAR_LIMIT:
            return Urgency(2, pressure)
        if load.straddler and load.straddler < self.overdue:
            return Urgency(1, self._score(load))
        return Urgency(0, self._score(load)) if self._is_due(load) else None

    def joining(self, load: Load) -> Urgency | None:
        """Of a slice that joins a plan for others; None of one that does not, also because it is due itself."""
        nearly = load.files and self._has_commits(load, self.settings.compaction_commits * NEARLY)
        return Urgency(-1, self._score(load)) if nearly and self.urgency(load) is None else None

    def _has_commits(self, load: Load, wanted: float) -> bool:
        trigger, many = self.settings.compaction_trigger, load.commits >= wanted
        return many and (trigger in ("NUM_COMMITS", "NUM_OR_TIME") or load.oldest < self.aged)

    def _is_due(self, load: Load) -> bool:
        settings, trigger = self.settings, self.settings.compaction_trigger
        if not load.base_instant and load.commits >= min(settings.compaction_first_commits, settings.compaction_commits):
            return True
        old = load.oldest < self.aged
        if self._has_commits(load, settings.compaction_commits) or (old and trigger in ("TIME_ELAPSED", "NUM_OR_TIME")):
            return True
        return load.bytes >= settings.compaction_log_bytes or self._amplifies(load) >= 1

    def _amplifies(self, load: Load) -> float:
        """Log bytes per base byte, as a share of what is allowed."""
        if not load.base_instant or load.bytes < SMALL_LOGS:
            return 0.0
        return load.bytes / (max(1, load.base_size) * self.settings.compaction_read_amplification)

    def _score(self, load: Load) -> float:
        """1 is exactly due by one of the rules that count."""
        settings = self.settings
        commits = min(settings.compaction_first_commits, settings.compaction_commits)
        allowed = settings.compaction_commits if load.base_instant else commits
        return max(load.commits / allowed, load.bytes / settings.compaction_log_bytes, self._amplifies(load))


def load_of(part: FileSlice) -> Load:
    """The load of a slice of the view."""
    logs = part.logs
    oldest = logs[0].instant if logs else ""
    base_instant = part.base_instant if part.base else ""
    commits = len({log.instant for log in logs})
    return Load(commits, len(logs), part.log_bytes, oldest, base_instant, part.base_size)


def overdue_since(completed: Sequence[str], settings: TableSettings) -> str:
    """The instant before which straddling logs are overdue, or ""; ``completed``: all of the active timeline, oldest first.

    A compacted slice stays readable as of older commits for a while, and its straddling logs keep holding archiving back
    until it is cleaned; so it has to be compacted that much before ``hoodie.keep.min.commits``. One that is older than the
    timeline was archived by another program or an older version of this one; readers may miss its rows now.
    """
    commits = settings.archive_min - (settings.clean_commits if settings.clean_policy == "KEEP_LATEST_COMMITS" else 0)
    keep = max(commits, settings.archive_min // 2)
    return completed[-min(keep, len(completed))] if completed else ""
