"""From a complete checkpoint to the one that readers see: what goes to the committer, and what follows from its answers. Pure."""

from dataclasses import dataclass
from typing import assert_never

from headgate_coordinator.core import events
from headgate_coordinator.core.checkpoints import Checkpoint, Phase
from headgate_coordinator.core.events import CommitRefused, InstantRefused, OfCheckpoint
from headgate_coordinator.core.instructions import Alarm, Commit, Decided, Instant
from headgate_coordinator.core.table_state import TableState


@dataclass(frozen=True, slots=True)
class LastCheckpoint:
    """The newest checkpoint with rows that was published: seconds since its barrier, files, Arrow bytes."""

    seconds: float = 0.0
    files: int = 0
    nbytes: int = 0


class Decisions:
    """Of one table, in the order of its checkpoints (rules RO1, RO2, RO5)."""

    def __init__(self, state: TableState) -> None:
        self.last = LastCheckpoint()
        self._state = state

    def commit(self, complete: Checkpoint) -> str:
        """Rows and offsets go into one slot; offsets alone into one without an instant; nothing writes nothing (rule RO5).

        Returns why the generation has to be given up instead; "": it has not.
        """
        state = self._state
        try:
            complete.channels = state.channels.delta(complete.offsets)
        except KeyError as unknown:
            return f"a writer reported rows of channel {unknown.args[0]!r}, which nobody has opened"
        files = complete.files
        if not state.retry.why:
            state.size.flushed(complete.membership.intake, complete.most_taken, state.now - complete.barrier_at)
        if not files:
            state.drop(complete)
        if complete.writes:
            complete.phase = Phase.SENT
            state.out.append(Commit(complete.generation, complete.number, files, complete.channels))
        else:
            self._won(complete)
            self._publish_empty()
        return ""

    def answered(self, named: Checkpoint, event: OfCheckpoint) -> None:
        """What the committer says of that checkpoint."""
        state = self._state
        match event:
            case events.InstantIssued():
                named.issued(state.now)
                if state.checkpoints.flushing is None or not state.checkpoints.flushing.complete:
                    state.retry.succeeded()
                state.tell_all(named, Instant(event.checkpoint, event.instant))
            case InstantRefused():
                state.drop(named)
                named.instant_asked = False
                self._refused(event)
            case events.SlotWon():
                self._won(named)
            case events.Published():
                self._published(named)
                self._publish_empty()
            case CommitRefused():
                self._commit_refused(named, event)
            case _:
                assert_never(event)

    def _won(self, won: Checkpoint) -> None:
        state = self._state
        state.checkpoints.won(won)
        state.channels.committed(won.channels)
        state.memberships.decided(won)
        state.aborts.decided(writes=won.writes)
        if won.writes:
            state.retry.succeeded()
        if won.generation == state.generation:
            state.members.settle(won)
        state.tell_all(won, Decided(won.number, queryable=False))

    def _published(self, published: Checkpoint) -> None:
        state = self._state
        state.checkpoints.unpublished.remove(published)
        state.tell_all(published, Decided(published.number, queryable=True))
        if published.writes:
            self.last = LastCheckpoint(state.now - published.barrier_at, len(published.files), published.bytes)
        state.intake.ladder.published(published)
        state.look_at_opens()

    def _publish_empty(self) -> None:
        """A checkpoint that wrote nothing is seen once those before it are: writers take its ack for all checkpoints up to it."""
        while (oldest := self._state.checkpoints.oldest_unpublished) is not None and not oldest.writes:
            self._published(oldest)

    def _refused(self, event: InstantRefused | CommitRefused) -> None:
        """Rows stay where they are, in memory or in files, and nobody has to send them again: the same is tried later."""
        state = self._state
        if not state.retry.why:
            state.out.append(Alarm(f"checkpoint {event.checkpoint} waits, the table's storage refused it: {event.why}"))
        state.retry.refused(event.why, state.now)

    def _commit_refused(self, refused: Checkpoint, event: CommitRefused) -> None:
        """For certain nothing was decided: the checkpoint is as it was before it was sent."""
        state = self._state
        if refused.generation == state.generation:
            refused.phase = Phase.FLUSHING
            self._refused(event)
        else:
            state.drop(refused)
            state.checkpoints.older = None
            state.look_at_opens()
