"""What a table of one bucket must show as of any point, from what was committed and compacted: written from the rules alone.

Commits merge in the order of their instants. A compaction takes the logs of a partition that had completed before its instant
and forgets the deletes in them (rule DE2). As of a point, the newest compaction of a partition that had completed by then stands
for everything before its instant. A range shows the rows of its commits, out of the files that its commits and compactions wrote.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Key = tuple[str, str]
"""Partition and record key."""
Rows = dict[Key, tuple[int, str]]


class Entry(NamedTuple):
    """A row, or with ``value`` None a delete."""

    key: Key
    ordering: int
    value: str | None


@dataclass(frozen=True)
class Committed:
    """A delta commit. ``in_base``: its rows are in base files, those that a partition begins with."""

    instant: str
    completion: str
    entries: Sequence[Entry]
    in_base: bool = False


@dataclass(frozen=True)
class CompactedAt:
    """A completed compaction of some partitions."""

    instant: str
    completion: str
    partitions: frozenset[str]


Standing = dict[Key, tuple[Entry, str]]
"""The entry of each key that won, and the instant that wrote it."""


@dataclass
class Replay:
    """``event_time``: the larger ordering value wins, else the later entry."""

    event_time: bool
    commits: list[Committed] = field(default_factory=list)
    compactions: list[CompactedAt] = field(default_factory=list)

    @property
    def points(self) -> list[str]:
        """Completion times of everything, in order."""
        return sorted([*(each.completion for each in self.commits), *(each.completion for each in self.compactions)])

    def rows(self, point: str = "9") -> Rows:
        """What a snapshot as of ``point`` shows."""
        shown: Rows = {}
        for partition in self._partitions():
            standing, merged, _ = self._base(partition, point)
            self._merge(standing, partition, merged, point)
            shown |= _live(standing)
        return shown

    def base_rows(self) -> Rows:
        """What the newest base files hold."""
        bases = [self._base(partition, "9")[0] for partition in self._partitions()]
        return {key: row for standing in bases for key, row in _live(standing).items()}

    def changed(self, since: str, until: str = "9") -> Rows:
        """Rows of the commits that completed after ``since`` and not after ``until``."""
        written = {each.instant for each in self.commits if since < each.completion <= until}
        shown: Rows = {}
        for partition in self._partitions():
            standing, merged, completed = self._base(partition, until)
            if completed <= since:
                standing, merged = {}, since
            # Rows of other commits count for nothing, not even against a late one.
            standing = {key: won for key, won in standing.items() if won[1] in written}
            self._merge(standing, partition, merged, until, since)
            shown |= _live(standing)
        return shown

    def undo_after(self, point: str) -> None:
        """A restore."""
        self.commits = [each for each in self.commits if each.completion <= point]
        self.compactions = [each for each in self.compactions if each.completion <= point]

    def _partitions(self) -> set[str]:
        return {entry.key[0] for commit in self.commits for entry in commit.entries}

    def _base(self, partition: str, point: str) -> tuple[Standing, str, str]:
        """The newest base file: what is in it, its instant and when that completed."""
        standing: Standing = {}
        merged = completed = ""
        for commit in self.commits:
            if commit.in_base and commit.completion <= point:
                self._add(standing, partition, [commit])
                merged, completed = commit.instant, commit.completion
        for compaction in sorted(self.compactions, key=lambda each: each.instant):
            if compaction.completion <= point and partition in compaction.partitions:
                self._merge(standing, partition, merged, compaction.instant, before=True)
                standing = {key: won for key, won in standing.items() if won[0].value is not None}
                merged, completed = compaction.instant, compaction.completion
        return standing, merged, completed

    def _merge(
        self, standing: Standing, partition: str, merged: str, until: str, since: str = "", *, before: bool = False
    ) -> None:
        """Adds the logs that completed from ``merged`` on, after ``since`` and up to ``until`` (``before``: not at it)."""
        logs = [
            each
            for each in self.commits
            if not each.in_base
            and merged <= each.completion
            and since < each.completion
            and (each.completion < until if before else each.completion <= until)
            and any(entry.key[0] == partition for entry in each.entries)
        ]
        self._add(standing, partition, logs)

    def _add(self, standing: Standing, partition: str, commits: Iterable[Committed]) -> None:
        for commit in sorted(commits, key=lambda each: each.instant):
            for entry in commit.entries:
                known = standing.get(entry.key)
                if entry.key[0] == partition and (known is None or not self.event_time or entry.ordering >= known[0].ordering):
                    standing[entry.key] = entry, commit.instant


def _live(standing: Standing) -> Rows:
    return {key: (entry.ordering, entry.value) for key, (entry, _) in standing.items() if entry.value is not None}
