"""Decides the membership of the next checkpoint: its members and their key groups (rules RO3, EX3)."""

from collections.abc import Sequence

from headgate_coordinator.core.assignment import MeasuredLoad, assign
from headgate_coordinator.core.checkpoints import Checkpoint
from headgate_coordinator.core.instructions import Membership


class Memberships:
    """Remembers measured loads and the last assignment."""

    def __init__(self, key_groups: int) -> None:
        self._load = MeasuredLoad(key_groups)
        self._had: Sequence[str] = ()

    def note_decided(self, decided: Checkpoint) -> None:
        """Adds the checkpoint's bytes by key group to the load."""
        self._load.add_checkpoint(decided.key_group_bytes)

    def next_membership(self, number: int, members: Sequence[tuple[str, str]]) -> Membership:
        """Returns the membership of checkpoint ``number``. ``members``: process and address of each."""
        processes = [process for process, _ in members]
        # Moves are few while rows flow; before the first rows and after an abort nothing is under way.
        few = number > 1 and self._load.is_known
        self._had = assign(self._had, processes, self._load.weights(), few=few)
        index = {process: position for position, process in enumerate(processes)}
        return Membership(number, tuple(members), tuple(index[process] for process in self._had))
