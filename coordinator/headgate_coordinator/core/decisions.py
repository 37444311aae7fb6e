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

    def send_commit(self, complete: Checkpoint) -> str:
        """Rows and offsets go into one slot; offsets alone into one without an instant; nothing writes nothing (rule RO5).

        Returns why the generation has to be given up instead; "": it has not.
        """
        state = self._state
        try:
            complete.channels = state.channels.grown_records(complete.offsets)
        except KeyError as unknown:
            return f"a writer reported rows of channel {unknown.args[0]!r}, which nobody has opened"
        files = complete.files
        if not state.retry.why:
            state.size.note_flush(complete.membership.intake, complete.largest_intake, state.now - complete.barrier_at)
        if not files:
            state.drop_transaction(complete)
        if complete.needs_slot:
            complete.phase = Phase.SENT
            state.out.append(Commit(complete.generation, complete.number, files, complete.channels))
        else:
            self._won(complete)
            self._publish_empty()
        return ""

    def handle_answer(self, named: Checkpoint, event: OfCheckpoint) -> None:
        """What the committer says of that checkpoint."""
        state = self._state
        match event:
            case events.InstantIssued():
                named.note_instant(state.now)
                if state.checkpoints.flushing is None or not state.checkpoints.flushing.is_complete:
                    state.retry.note_success()
                state.send_to_members(named, Instant(event.checkpoint, event.instant))
            case InstantRefused():
                state.drop_transaction(named)
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
        state.checkpoints.mark_won(won)
        state.channels.note_committed(won.channels)
        state.memberships.note_decided(won)
        state.aborts.note_decision(writes=won.needs_slot)
        if won.needs_slot:
            state.retry.note_success()
        if won.generation == state.generation:
            state.members.subtract_committed(won)
        state.send_to_members(won, Decided(won.number, queryable=False))

    def _published(self, published: Checkpoint) -> None:
        state = self._state
        state.checkpoints.unpublished.remove(published)
        state.send_to_members(published, Decided(published.number, queryable=True))
        if published.needs_slot:
            self.last = LastCheckpoint(state.now - published.barrier_at, len(published.files), published.bytes)
        state.intake.backpressure.note_published(published)
        state.answer_opens()

    def _publish_empty(self) -> None:
        """A checkpoint that wrote nothing is seen once those before it are: writers take its ack for all checkpoints up to it."""
        while (oldest := self._state.checkpoints.oldest_unpublished) is not None and not oldest.needs_slot:
            self._published(oldest)

    def _refused(self, event: InstantRefused | CommitRefused) -> None:
        """Rows stay where they are, in memory or in files, and nobody has to send them again: the same is tried later."""
        state = self._state
        if not state.retry.why:
            state.out.append(Alarm(f"checkpoint {event.checkpoint} waits, the table's storage refused it: {event.why}"))
        state.retry.note_refusal(event.why, state.now)

    def _commit_refused(self, refused: Checkpoint, event: CommitRefused) -> None:
        """For certain nothing was decided: the checkpoint is as it was before it was sent."""
        state = self._state
        if refused.generation == state.generation:
            refused.phase = Phase.FLUSHING
            self._refused(event)
        else:
            state.drop_transaction(refused)
            state.checkpoints.older = None
            state.answer_opens()
