"""Walks in which flushes of some writers fail each time, or those of all for a while: the others go on (rule RO13)."""

from collections.abc import Set
from random import Random

from headgate_coordinator.core.table_coordinator import TableCoordinator
from support.coordinator_sim.false_walk import HONEST, FalseWalk
from support.coordinator_sim.walk import Walk


class FailingWalk(FalseWalk):
    """The false ones write no file, and are as many as the others at most. An operator ends them when all is committed."""

    def __init__(self, seed: int, make: type[TableCoordinator] = TableCoordinator, broken: Set[str] = frozenset()) -> None:
        self.paused = 0
        super().__init__(seed, make, broken, Random(seed + 7_000_000))
        self.start_writer()

    def start_writer(self, process: str = "", address: str = "") -> None:
        """It fails if not too many do."""
        super().start_writer(process, address)
        if len(self.writers) > HONEST and len(self.false & self.writers.keys()) < HONEST and self._choice.random() < 0.8:
            writer = list(self.writers.values())[-1]
            self.false.add(writer.process)
            writer.failing = True

    def tick(self) -> None:
        super().tick()
        self.paused = max(self.paused, len(self.excluded))

    def look_after(self) -> None:
        super().look_after()
        _end_writers(self, self.false)


def _end_writers(walk: Walk, processes: Set[str]) -> None:
    """Once everything is committed: what an owner does when their time is over would be mistaken for unrest."""
    if all(walk.log.offset(name) == rows for name, rows in walk.rows.items()):
        for process in processes & walk.writers.keys():
            walk.stop_writer(walk.writers[process])


class AllFailingWalk(Walk):
    """Each flush of every writer fails, whose cause is in the table, until faults stop."""

    ends = False

    def start_writer(self, process: str = "", address: str = "") -> None:
        super().start_writer(process, address)
        list(self.writers.values())[-1].failing = not self.ends

    def look_after(self) -> None:
        self.ends = True
        for writer in self.writers.values():
            writer.failing = False
        _end_writers(self, set(self.owner.core._state.members.excluded))
