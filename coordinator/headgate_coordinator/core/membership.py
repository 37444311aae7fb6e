"""The membership of the next checkpoint: who takes part and who has which key groups (rules RO3, EX3)."""

from collections.abc import Sequence

from headgate_coordinator.core.assignment import MeasuredLoad, assign
from headgate_coordinator.core.checkpoints import Checkpoint
from headgate_coordinator.core.instructions import Membership


class Memberships:
    """Remembers what checkpoints measured and who had what."""

    def __init__(self, key_groups: int) -> None:
        self._load = MeasuredLoad(key_groups)
        self._had: Sequence[str] = ()

    def note_decided(self, decided: Checkpoint) -> None:
        """Its bytes by key group count."""
        self._load.add_checkpoint(decided.key_group_bytes)

    def next_membership(self, number: int, members: Sequence[tuple[str, str]]) -> Membership:
        """``members``: process and address of each."""
        processes = [process for process, _ in members]
        # Moves are few while rows flow; before the first rows and behind an abort there is nothing to go on with.
        few = number > 1 and self._load.is_known
        self._had = assign(self._had, processes, self._load.weights(), few=few)
        index = {process: position for position, process in enumerate(processes)}
        return Membership(number, tuple(members), tuple(index[process] for process in self._had))
