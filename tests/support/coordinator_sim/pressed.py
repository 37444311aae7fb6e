"""Walks through a table whose slices have a limit of log files, while compaction comes seldom or never."""

from collections.abc import Set
from random import Random

from headgate_coordinator.core.pressure import LONGEST_STRETCH
from headgate_coordinator.core.table_coordinator import TableCoordinator
from support.coordinator_sim.owner import Compact
from support.coordinator_sim.rest import come_to_rest, end_faults, fair_pass
from support.coordinator_sim.slots import SLICES, StuckError
from support.coordinator_sim.walk import Walk

LIMITS = (4, 5, 6, 8, 12)
MORE_ROWS = 8


class PressedWalk(Walk):
    """Its own draws leave those of other walks as they are.

    ``compactors`` False: there are none before the end, nor takeovers, so that every accepted row has to commit without them.
    """

    windows = (0, 0, 100, 300)
    timeouts = (30.0,)

    def __init__(
        self,
        seed: int,
        make: type[TableCoordinator] = TableCoordinator,
        broken: Set[str] = frozenset(),
        *,
        compactors: bool = True,
    ) -> None:
        self._chance = Random(seed + 1_000_000)
        self._compactors = compactors
        self._passes = 0
        self.limit = self._chance.choice(LIMITS)
        self.stops = 0
        super().__init__(seed, make, broken)
        self.rows = {name: rows * MORE_ROWS for name, rows in self.rows.items()}
        self.producers = [self.producer(name) for name in self.rows]
        self._weights[self._compact] = self._chance.choice((0.0, 0.5, 4.0)) if compactors else 0.0
        self._weights[self._count] = self._chance.choice((0.3, 5.0))

    def _compact(self) -> None:
        committer = self.owner.committer
        if committer.counted and not self.owner.over:
            slices = self._chance.sample(range(SLICES), self._chance.randint(1, SLICES))
            committer.queue.append(Compact(tuple(slices)))

    def _count(self) -> None:
        self._note()
        if not self.owner.over:
            self.owner.committer.count()

    def look_after(self) -> None:
        """Counts, and compacts everything now and then."""
        self._note()
        self._passes += 1
        committer = self.owner.committer
        if not self.owner.over and not committer.counted:
            committer.count()
        elif self._compactors and self._passes % 7 == 0 and committer.idle and any(self.log.log_files):
            committer.queue.append(Compact(tuple(range(SLICES))))

    def run(self, steps: int) -> None:
        """Without compactors: what was accepted is committed; then they come."""
        if not self._compactors:
            self.go(steps)
            end_faults(self)
            for _ in range(LONGEST_STRETCH * 10):
                fair_pass(self, 2.0)
            left = {writer.process: writer.uncommitted for writer in self.writers.values() if writer.uncommitted}
            if left:
                raise StuckError(f"rows were taken that find no room: {left}; slices have {self.log.log_files} of {self.limit}")
            self._compactors = True
            come_to_rest(self)
        else:
            super().run(steps)

    def _lose_owner(self) -> None:
        if self._compactors:
            super()._lose_owner()

    def _hand_over(self) -> None:
        if self._compactors:
            super()._hand_over()

    def _note(self) -> None:
        self.stops += self.owner.core.pressure.stopped is not None
