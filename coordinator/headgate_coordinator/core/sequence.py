"""The checkpoints of one table: one fills, at most one before it is undecided, won ones wait for publication (RO1, RO2)."""

from collections.abc import Sequence

from headgate_coordinator.core.checkpoints import Checkpoint, Phase
from headgate_coordinator.core.instructions import IssueInstant, Membership


class CheckpointSequence:
    """``older``: the undecided one; of an older generation only if its slot was sent, and then only awaited (rule RO2)."""

    def __init__(self) -> None:
        self.generation = 1
        self.filling = Checkpoint(1, Membership(1, (), ()))
        self.older: Checkpoint | None = None
        self.unpublished: list[Checkpoint] = []
        self._decided_at = 0.0

    @property
    def progressed_at(self) -> float:
        """When a checkpoint last went on, was won or published, in monotonic seconds; 0: never."""
        return max([self._decided_at, *(each.progressed_at for each in self.behind)])

    @property
    def dirty_since(self) -> float | None:
        """Since when the oldest unpublished checkpoint with rows has some; None: no checkpoint has."""
        every = (*self.behind, self.filling)
        return min((each.dirty_since for each in every if each.dirty_since is not None), default=None)

    def note_decision(self, now: float) -> None:
        """Notes that a checkpoint was won or published."""
        self._decided_at = now

    def youngest_of(self, process: str) -> int:
        """The youngest checkpoint that can have rows taken by this writer: it need not have seen the last barrier yet (CH3)."""
        return self.filling.number if process in self.filling.members else self.filling.number - 1

    @property
    def flushing(self) -> Checkpoint | None:
        """The older checkpoint, if it is of this generation."""
        return self.older if self.older is not None and self.older.generation == self.generation else None

    @property
    def behind(self) -> Sequence[Checkpoint]:
        """Unpublished checkpoints before the filling one: won ones, then the older one."""
        return [*self.unpublished, *([self.older] if self.older is not None else [])]

    @property
    def busy_processes(self) -> set[str]:
        """Members of unpublished checkpoints of this generation."""
        own = [each for each in (self.filling, *self.behind) if each.generation == self.generation]
        return {process for each in own for process in each.members}

    @property
    def last_decided(self) -> int:
        """The newest checkpoint of this generation up to which all are committed and published."""
        return min((each.number - 1 for each in self.behind), default=self.filling.number - 1)

    @property
    def blocked(self) -> bool:
        """Whether committed offsets are not final: an older generation's checkpoint is undecided, or a won one is unpublished."""
        return bool(self.unpublished) or (self.older is not None and self.older.generation != self.generation)

    @property
    def is_over(self) -> bool:
        """Whether only the filling checkpoint is left."""
        return not self.behind

    def find(self, generation: int, number: int) -> Checkpoint | None:
        """The checkpoint of that generation and number; None when it is over."""
        every = (*self.behind, self.filling)
        return next((each for each in every if (each.generation, each.number) == (generation, number)), None)

    @property
    def oldest_unpublished(self) -> Checkpoint | None:
        """The oldest won checkpoint that readers do not see yet."""
        return self.unpublished[0] if self.unpublished else None

    def want_instant(self, number: int) -> None:
        """Notes that a checkpoint needs an instant. An older one without an instant gets its own first (rules TM5, RO2)."""
        for each in self._without_slot():
            each.instant_wanted = each.instant_wanted or each.number <= number

    def next_instant(self) -> list[IssueInstant]:
        """Asks for the next instant, one at a time: the younger checkpoint must not get one if the older one is refused."""
        for each in self._without_slot():
            if each.instant_wanted and not each.instant_issued:
                if each.instant_asked:
                    return []
                each.instant_asked = True
                return [IssueInstant(each.generation, each.number)]
        return []

    def _without_slot(self) -> list[Checkpoint]:
        """Checkpoints of this generation whose slot is not sent, the oldest first."""
        return [each for each in (self.flushing, self.filling) if each is not None and each.phase is not Phase.SENT]

    def begin_first(self, membership: Membership) -> None:
        """Gives the filling checkpoint its first members."""
        self.filling = Checkpoint(self.generation, membership)

    def end_filling(self, following: Membership, now: float) -> Checkpoint:
        """Draws the border: the filling checkpoint flushes, the next one fills. Returns the one that flushes."""
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
        """Begins a new generation. Returns the aborted checkpoints: all whose slot is not sent (rule RO2)."""
        given_up = self._without_slot()
        if self.older in given_up:
            self.older = None
        self.generation += 1
        self.filling = Checkpoint(self.generation, membership)
        return given_up
