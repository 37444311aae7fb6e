"""When the owner of a table looks for maintenance that is due: behind work that leaves some, and now and then."""

from collections.abc import Callable
from typing import Final

from headgate_coordinator.core.events import CompactorsCounted
from headgate_coordinator.core.instructions import CommitCheckpoint
from headgate_coordinator.streams.compactors import Compactors
from headgate_coordinator.tables.committer import Committer
from headgate_coordinator.tables.work import Maintain, Work, leaves_something_due
from headgate_runtime.world import Clock

FIRST_LOOK_S: Final = 2.0
"""Seconds from the beginning of an ownership until upkeep begins, unless a checkpoint is committed before. Listings and searches
take CPU from the first checkpoint, for which rows wait. Longer: an idle table that changed hands is compacted later.
"""
COUNTING_S: Final = 0.05
"""Seconds between two looks at whether the listing of a table's slices is there, after the ownership began."""
QUIET_INTERVALS: Final = 10
"""Intervals between two looks at a table where nothing happens. Age alone makes things due then, and is set in minutes. Fewer: a
coordinator of a thousand quiet tables does nothing but look at them.
"""


class MaintenanceLooks:
    """``interval``: seconds. ``put`` queues a step of maintenance, ``report`` an event of the core; both on the event loop."""

    def __init__(
        self,
        committer: Committer,
        compactors: Compactors,
        clock: Clock,
        interval: float,
        put: Callable[[Maintain], None],
        report: Callable[[CompactorsCounted], None],
    ) -> None:
        self._committer = committer
        self._compactors = compactors
        self._clock = clock
        self._interval = interval
        self._put = put
        self._report = report
        self._count: int | None = None
        self._waits = False
        self._quiet = False
        self.begun = False
        """Whether upkeep may begin, see ``FIRST_LOOK_S``. At once where no slices are counted: no checkpoint commits before."""

    async def run(self) -> None:
        """Asks for a step at each interval: a table without new rows has slices to compact and files to delete, too."""
        passed = 0
        self._count_compactors()
        if self._committer.figures.counted:
            await self._clock.sleep(FIRST_LOOK_S)
        self.begun = True
        while True:
            self._count_compactors()
            # No checkpoint commits before the slices are counted, see ``Backpressure``.
            counted = self._committer.figures.counted
            passed += 1
            if passed >= QUIET_INTERVALS or not (self._quiet and counted):
                passed = 0
                self._ask()
            await self._clock.sleep(self._interval if counted else min(COUNTING_S, self._interval))

    def done(self, work: Work) -> None:
        """The committer has done this work, which may leave maintenance due."""
        self.begun = self.begun or isinstance(work, CommitCheckpoint)
        more, outage = self._committer.more_to_maintain, self._committer.outage.is_on
        if isinstance(work, Maintain):
            self._waits = False
        self._quiet = isinstance(work, Maintain) and not (more or outage)
        if leaves_something_due(work, more=more):
            self._ask()

    def _ask(self) -> None:
        """At most one step waits."""
        if not self._waits:
            self._waits = True
            self._put(Maintain())

    def _count_compactors(self) -> None:
        if (count := len(self._compactors)) != self._count:
            self._count = count
            self._report(CompactorsCounted(count))
