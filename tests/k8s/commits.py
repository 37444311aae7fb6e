"""When a table's commits came, seen from outside: a thread looks at the timeline in the store."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from headgate_tables.errors import TablesError
from headgate_tables.storage.store import Store
from support.lookout import Lookout

PERIOD_S = 0.1
TIMELINE = ".hoodie/timeline"


@dataclass(frozen=True, slots=True)
class Commit:
    """A completed delta commit. ``at``: seconds since the epoch when it was first seen."""

    at: float
    instant: str
    completion: str


class CommitWatch:
    """``store``: the table's folder, which may not be there yet. ``seen``: commits in the order in which they came."""

    def __init__(self, store: Store) -> None:
        self.seen: list[Commit] = []
        self.unreadable = 0
        self._store = store
        self._lookout = Lookout("commits", self._look, PERIOD_S)

    def stop(self) -> None:
        self._lookout.stop()

    def _look(self) -> None:
        # Two checkpoints are open at most, so nothing completes any more that began long before the newest.
        after = self.seen[-20].instant if len(self.seen) >= 20 else None
        try:
            names = self._store.list_folder(TIMELINE, after=after).files
        except TablesError:
            self.unreadable += 1
            return
        now, newest = time.time(), self.seen[-1].completion if self.seen else ""
        found = [name.removesuffix(".deltacommit").partition("_") for name in names if name.endswith(".deltacommit")]
        new = sorted((completion, instant) for instant, _, completion in found if completion > newest)
        self.seen += [Commit(now, instant, completion) for completion, instant in new]


@dataclass(frozen=True, slots=True)
class Gap:
    """``seconds`` without a commit; it began at ``at``, seconds since the epoch."""

    seconds: float
    at: float


def longest_gap(moments: Sequence[float], begin: float, end: float) -> Gap:
    """The longest wait for a commit from ``begin`` to ``end``. A wait counts whole, but not what lies before ``begin``.

    ``moments`` in order. Without a commit at or after ``end`` the last wait lasts until ``end``.
    """
    longest, before = Gap(0.0, begin), begin
    for moment in [*moments, max([end, *moments[-1:]])]:
        if moment >= begin and before <= end:
            longest = max(longest, Gap(moment - before, before), key=lambda gap: gap.seconds)
        before = max(moment, begin)
    return longest
