"""Walks in which some writers lose rows and do not say so: whatever they report, what is committed is whole (rule RO10)."""

from collections.abc import Set
from random import Random

from headgate_coordinator.core.table_coordinator import TableCoordinator
from support.coordinator_sim.walk import Walk
from support.coordinator_sim.writer import Writer

LIES = ("drops frames", "writes nothing", "reports nothing", "loses frames", "takes offsets")
"""What such a writer does. The first three are its bucket side's: it loses what it received before it counts it, or behind that,
or reports no rows at all. The others are its ingest side's: rows that it counts do not go out, or it reports offsets of
channels that it never held. One that takes rows from clients and reports their offset without them cannot be found: nobody else
has seen these rows.
"""
HONEST = 2
"""Writers that the table has besides: two that disagree are not enough to find the liar."""


class LyingWalk(Walk):
    """Each has one kind of lie; its own draws leave those of other walks as they are. ``liars``: processes that lied, ever."""

    def __init__(self, seed: int, make: type[TableCoordinator] = TableCoordinator, broken: Set[str] = frozenset()) -> None:
        self._choice = Random(seed + 5_000_000)
        self._lie = self._choice.choice(LIES)
        self.liars: set[str] = set()
        self._make_honest = False
        super().__init__(seed, make, broken)
        self._have_honest()

    def start_writer(self, process: str = "", address: str = "") -> None:
        """Some lie."""
        super().start_writer(process, address)
        writer = list(self.writers.values())[-1]
        if not self._make_honest and self._choice.random() < 0.4:
            self.liars.add(writer.process)
            writer.begin_lying(self._lie)

    def look_after(self) -> None:
        """The newest owner has writers that it can go on with."""
        self._have_honest()

    def _have_honest(self) -> None:
        self._make_honest = True
        while len([writer for writer in self.writers.values() if self._is_of_use(writer)]) < HONEST:
            self.start_writer()
        self._make_honest = False

    def _is_of_use(self, writer: Writer) -> bool:
        return writer.process not in self.liars | self.excluded and not writer.leaving

    @property
    def excluded(self) -> set[str]:
        """By the newest owner."""
        return set(self.owner.core._state.members.excluded)
