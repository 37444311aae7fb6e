"""Walks in which one writer at a time lives, takes rows and never passes a barrier: the others go on without it (rule RO11)."""

from collections.abc import Set
from random import Random

from headgate_coordinator.core.table_coordinator import TableCoordinator
from support.coordinator_sim.false_walk import HONEST, FalseWalk


class SilentWalk(FalseWalk):
    """The false ones pass no barrier."""

    timeouts = (3.0,)

    def __init__(self, seed: int, make: type[TableCoordinator] = TableCoordinator, broken: Set[str] = frozenset()) -> None:
        super().__init__(seed, make, broken, Random(seed + 6_000_000))

    def start_writer(self, process: str = "", address: str = "") -> None:
        """It is silent if no other one is that still has a part in the table."""
        super().start_writer(process, address)
        if len(self.writers) > HONEST and not self.false & self.writers.keys() - self.excluded and self._choice.random() < 0.5:
            writer = list(self.writers.values())[-1]
            self.false.add(writer.process)
            writer.silent = True
