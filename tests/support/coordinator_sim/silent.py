"""Walks in which one writer at a time lives, takes rows and never passes a barrier: the others go on without it (rule RO11)."""

from collections.abc import Set
from random import Random

from headgate_coordinator.core.table_coordinator import TableCoordinator
from support.coordinator_sim.walk import Walk

HONEST = 2
"""Writers that the table has besides: the last writer is never excluded."""


class SilentWalk(Walk):
    """``silent``: processes that passed no barrier, ever. Its own draws leave those of other walks as they are."""

    timeouts = (3.0,)

    def __init__(self, seed: int, make: type[TableCoordinator] = TableCoordinator, broken: Set[str] = frozenset()) -> None:
        self._choice = Random(seed + 6_000_000)
        self.silent: set[str] = set()
        super().__init__(seed, make, broken)
        self._have_honest()

    def start_writer(self, process: str = "", address: str = "") -> None:
        """It is silent if no other one is that still has a part in the table."""
        super().start_writer(process, address)
        if len(self.writers) > HONEST and not self.silent & self.writers.keys() - self.excluded and self._choice.random() < 0.5:
            writer = list(self.writers.values())[-1]
            self.silent.add(writer.process)
            writer.silent = True

    def look_after(self) -> None:
        """The newest owner has writers that it can go on with."""
        self._have_honest()

    def _have_honest(self) -> None:
        def is_of_use(process: str) -> bool:
            return process not in self.silent | self.excluded and not self.writers[process].leaving

        while sum(map(is_of_use, self.writers)) < HONEST:
            self.start_writer()

    @property
    def excluded(self) -> set[str]:
        """By the newest owner; nobody before there is one."""
        return set(self.owner.core._state.members.excluded) if getattr(self, "owners", []) else set()
