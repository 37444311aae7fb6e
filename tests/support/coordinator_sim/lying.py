"""Walks in which some writers lose rows and do not say so: whatever they report, what is committed is whole (rule RO10)."""

from collections.abc import Set
from random import Random

from headgate_coordinator.core.table_coordinator import TableCoordinator
from support.coordinator_sim.false_walk import FalseWalk

LIES = ("drops frames", "writes nothing", "reports nothing", "loses frames", "takes offsets")
"""What such a writer does. The first three are its bucket side's: it loses what it received before it counts it, or behind that,
or reports no rows at all. The others are its ingest side's: rows that it counts do not go out, or it reports offsets of
channels that it never held. One that takes rows from clients and reports their offset without them cannot be found: nobody else
has seen these rows.
"""


class LyingWalk(FalseWalk):
    """Each has one kind of lie."""

    def __init__(self, seed: int, make: type[TableCoordinator] = TableCoordinator, broken: Set[str] = frozenset()) -> None:
        choice = Random(seed + 5_000_000)
        self._lie = choice.choice(LIES)
        self._make_honest = False
        super().__init__(seed, make, broken, choice)

    def start_writer(self, process: str = "", address: str = "") -> None:
        """Some lie."""
        super().start_writer(process, address)
        writer = list(self.writers.values())[-1]
        if not self._make_honest and self._choice.random() < 0.4:
            self.false.add(writer.process)
            writer.begin_lying(self._lie)

    def _have_honest(self) -> None:
        self._make_honest = True
        super()._have_honest()
        self._make_honest = False
