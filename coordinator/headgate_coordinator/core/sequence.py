"""The checkpoints of one table, in order: one fills, at most one before it is undecided, won ones wait to be published (RO1,
RO2).
"""

from collections.abc import Sequence

from headgate_coordinator.core.checkpoints import Checkpoint, Phase
from headgate_coordinator.core.instructions import IssueInstant, Membership


class CheckpointSequence:
    """``older`` may be of an older generation: then its slot was sent, and it is only waited for (rule RO2)."""

    def __init__(self) -> None:
        self.generation = 1
        self.filling = Checkpoint(1, Membership(1, (), ()))
        self.older: Checkpoint | None = None
        self.unpublished: list[Checkpoint] = []

    @property
    def flushing(self) -> Checkpoint | None:
        """The older checkpoint, if it is of this generation."""
        return self.older if self.older is not None and self.older.generation == self.generation else None

    @property
    def behind(self) -> Sequence[Checkpoint]:
        """Checkpoints before the filling one that are not over: won ones that are not published, then the older one."""
        return [*self.unpublished, *([self.older] if self.older is not None else [])]

    @property
    def busy_processes(self) -> set[str]:
        """Processes that have a part in a checkpoint of this generation which is not over."""
        own = [each for each in (self.filling, *self.behind) if each.generation == self.generation]
        return {process for each in own for process in each.members}

    @property
    def last_decided(self) -> int:
        """Every checkpoint of this generation up to it is committed and published."""
        return min((each.number - 1 for each in self.behind), default=self.filling.number - 1)

    @property
    def blocked(self) -> bool:
        """A checkpoint of an older generation is undecided, or a won one is not published: committed offsets are not final."""
        return bool(self.unpublished) or (self.older is not None and self.older.generation != self.generation)

    @property
    def is_over(self) -> bool:
        """Nothing but the filling checkpoint is left."""
        return not self.behind

    def find(self, generation: int, number: int) -> Checkpoint | None:
        """By name, of any generation."""
        every = (*self.behind, self.filling)
        return next((each for each in every if (each.generation, each.number) == (generation, number)), None)

    @property
    def oldest_unpublished(self) -> Checkpoint | None:
        """Of the won checkpoints that readers do not see yet."""
        return self.unpublished[0] if self.unpublished else None

    def want_instant(self, number: int) -> None:
        """A bucket side has rows of that checkpoint. An older one that has no instant gets its own first (rules TM5, RO2)."""
        for each in self._without_slot():
            each.instant_wanted = each.instant_wanted or each.number <= number

    def next_instant(self) -> list[IssueInstant]:
        """The next instant that is wanted. One at a time: the younger checkpoint must not get one if the older checkpoint is
        refused.
        """
        for each in self._without_slot():
            if each.instant_wanted and not each.instant_issued:
                if each.instant_asked:
                    return []
                each.instant_asked = True
                return [IssueInstant(each.generation, each.number)]
        return []

    def _without_slot(self) -> list[Checkpoint]:
        """Of this generation, the oldest first."""
        return [each for each in (self.flushing, self.filling) if each is not None and each.phase is not Phase.SENT]

    def begin_first(self, membership: Membership) -> None:
        """The filling checkpoint gets members; it had none."""
        self.filling = Checkpoint(self.generation, membership)

    def end_filling(self, following: Membership, now: float) -> Checkpoint:
        """The border: the filling checkpoint flushes, the next one fills."""
        ended = self.filling
        ended.begin_flush(now)
        self.older, self.filling = ended, Checkpoint(self.generation, following)
        return ended

    def mark_won(self, won: Checkpoint) -> None:
        """The older checkpoint is decided; readers do not see it yet."""
        won.phase = Phase.WON
        self.older = None
        self.unpublished.append(won)

    def abort_generation(self, membership: Membership) -> Sequence[Checkpoint]:
        """A new generation begins. Returns the checkpoints that were given up: all whose slot is not sent (rule RO2)."""
        given_up = self._without_slot()
        if self.older in given_up:
            self.older = None
        self.generation += 1
        self.filling = Checkpoint(self.generation, membership)
        return given_up
