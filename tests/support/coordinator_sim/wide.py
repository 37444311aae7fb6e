"""Walks of many writers, and of many tables whose writers and coordinators die together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from headgate_coordinator.core.table_coordinator import TableCoordinator
from support.coordinator_sim.cluster import Scale
from support.coordinator_sim.rest import come_to_rest, fair_pass
from support.coordinator_sim.walk import Walk

WRITERS = 64
KEY_GROUPS = 128
"""As tables really have."""
_PASSES = 10
_CHANNELS = tuple(f"c{number}" for number in range(24))


class WideWalk(Walk):
    """Every writer has key groups, and rows go from each to all. Fair passes come between the random steps, which alone would end
    no checkpoint that waits for the barriers of so many.
    """

    scale = Scale(writers=(WRITERS, WRITERS), channels=_CHANNELS, key_groups=KEY_GROUPS, keys=4 * KEY_GROUPS)

    def go(self, steps: int) -> None:
        for _ in range(_PASSES):
            super().go(steps // _PASSES)
            fair_pass(self, 0.3)


@dataclass(frozen=True, slots=True)
class Blow:
    """After ``steps`` more steps these writers die, by their places, and others start; the coordinator may die, too."""

    steps: int
    writers: Sequence[int]
    coordinator: bool


def blows(seed: int, count: int, steps: int, writers: int) -> Iterator[Blow]:
    """What befalls the processes, and so all their tables, in the same order."""
    chance = Random(seed + 5_000_000)
    for _ in range(count):
        lost = chance.sample(range(writers), chance.randint(0, min(writers, 4)))
        yield Blow(chance.randint(steps // 2, steps), lost, chance.random() < 0.3)


class TableWalk(Walk):
    """One of many tables. It has few writers' rows, and all of its faults are blows to processes."""

    def __init__(self, seed: int, table: int, writers: int, make: type[TableCoordinator] = TableCoordinator) -> None:
        self.scale = Scale(writers=(writers, writers), key_groups=KEY_GROUPS, keys=KEY_GROUPS, rows=(30, 60))
        super().__init__(seed * 100_000 + table, make)
        self._budget = 0

    def endure(self, all_blows: Sequence[Blow]) -> None:
        """Raises ViolationError and StuckError."""
        for blow in all_blows:
            self.go(blow.steps)
            self.strike(blow)
        come_to_rest(self)

    def strike(self, blow: Blow) -> None:
        """Processes die as they do for every other table."""
        alive = list(self.writers.values())
        for place in blow.writers:
            self.stop_writer(alive[place])
            self.start_writer()
        if blow.coordinator:
            self._lose_owner()
