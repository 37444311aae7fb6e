"""Walks through a table whose slices have a limit of log files, while compaction comes seldom or never."""

from collections.abc import Set
from random import Random

from headgate_coordinator.table_coordinator import TableCoordinator
from support.coordinator_sim.owner import Compact
from support.coordinator_sim.slots import SLICES
from support.coordinator_sim.walk import Walk

LIMITS = (4, 5, 8, 12, 30)
MORE_ROWS = 4


class PressedWalk(Walk):
    """Its own draws leave those of other walks as they are. ``fullest``: the most log files that a slice has had."""

    def __init__(
        self, seed: int, make: type[TableCoordinator] = TableCoordinator, broken: Set[str] = frozenset(), *, healthy: bool = True
    ) -> None:
        self._chance = Random(seed + 1_000_000)
        self.limit = self._chance.choice(LIMITS)
        self.fullest = 0
        self.stops = 0
        super().__init__(seed, make, broken)
        self.rows = {name: rows * MORE_ROWS for name, rows in self.rows.items()}
        self.producers = [self.producer(name) for name in self.rows]
        self._weights[self._compact] = self._chance.choice((0.0, 0.5, 4.0)) if healthy else 0.0
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
        committer = self.owner.committer
        if not self.owner.over and not committer.counted:
            committer.count()
        elif not self.owner.over and committer.idle and any(self.log.log_files) and self._chance.random() < 0.2:
            committer.queue.append(Compact(tuple(range(SLICES))))

    def _note(self) -> None:
        self.fullest = max(self.fullest, *self.log.log_files)
        self.stops += self.owner.core.pressure.stopped is not None
