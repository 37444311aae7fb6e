"""Walks in which some writers do wrong: enough others live, and the table goes on with these."""

from collections.abc import Set
from random import Random

from headgate_coordinator.core.table_coordinator import TableCoordinator
from support.coordinator_sim.walk import Walk

HONEST = 2
"""Writers that the table has besides: two that disagree are not enough to find the false one, and the last one is never
excluded.
"""


class FalseWalk(Walk):
    """``false``: processes that did wrong, ever; each kind of walk says which do, when they start. ``choice``: its own draws,
    which leave those of other walks as they are.
    """

    def __init__(self, seed: int, make: type[TableCoordinator], broken: Set[str], choice: Random) -> None:
        self._choice = choice
        self.false: set[str] = set()
        super().__init__(seed, make, broken)
        self._have_honest()

    def look_after(self) -> None:
        """The newest owner has writers that it can go on with."""
        self._have_honest()

    def _have_honest(self) -> None:
        while sum(map(self._is_of_use, self.writers)) < HONEST:
            self.start_writer()

    def _is_of_use(self, process: str) -> bool:
        return process not in self.false | self.excluded and not self.writers[process].leaving

    @property
    def excluded(self) -> set[str]:
        """By the newest owner; nobody before there is one."""
        return set(self.owner.core._state.members.excluded) if getattr(self, "owners", []) else set()
