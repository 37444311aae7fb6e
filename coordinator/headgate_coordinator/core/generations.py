"""What a generation goes through: it begins with the writers that are there, has a border behind each checkpoint, and ends.
Pure.
"""

from headgate_coordinator.core.checkpoint_end import CheckpointEnd
from headgate_coordinator.core.checkpoints import Phase
from headgate_coordinator.core.instructions import Alarm, AskLog, Barrier, Detach, Drained, Refusal
from headgate_coordinator.core.refusals import HANDING_OVER, MOVED
from headgate_coordinator.core.table_state import TableState


class Generations:
    """Of one table, one after the other; ``checkpoint_end`` is told when the wait for the next border begins."""

    def __init__(self, state: TableState, checkpoint_end: CheckpointEnd) -> None:
        self._state = state
        self._checkpoint_end = checkpoint_end
        self._drained = False

    def begin(self) -> None:
        """The filling checkpoint has no members until the first writer comes."""
        state = self._state
        if not state.checkpoints.filling.members and (eligible := state.eligible):
            state.checkpoints.fill(state.next_membership(state.checkpoints.filling.number, eligible, state.checkpoints.behind))
            state.attach(state.checkpoints.filling.members)
            state.begin_taking()

    def end_checkpoint(self) -> None:
        """The border: barriers to the checkpoint's members, the next membership to those who are new (rules RO3, RO7)."""
        state = self._state
        checkpoints = state.checkpoints
        following = state.next_membership(
            checkpoints.filling.number + 1, state.eligible, [*checkpoints.behind, checkpoints.filling]
        )
        staying = dict(following.members)
        for process in checkpoints.filling.members:
            if process not in staying:  # its clients go before the barrier, so that none of their rows comes behind it
                state.out += state.channels.end_all(process, HANDING_OVER if state.draining else MOVED, state.standing())
        for process, order in state.intake.stops(sorted(state.members.attached)):
            state.tell(process, order)
        ended = checkpoints.end(following, state.now)
        state.tell_all(ended, Barrier(ended.number, following))
        state.attach(process for process in staying if process not in ended.members)
        self._begin_waiting(recovering=False)
        state.begin_taking()

    def give_up(self, why: str) -> None:
        """Everything that is not sent is given up, in a new generation (rule RO2)."""
        state = self._state
        state.aborts.given_up(why, state.now)
        state.out.append(Alarm(f"generation {state.generation} was given up: {why}"))
        state.out.append(AskLog())  # writers that obey another owner look like writers that fail
        state.size.restart()
        membership = state.next_membership(
            1, state.eligible, [each for each in state.checkpoints.behind if each.phase is not Phase.FLUSHING]
        )
        for given_up in state.checkpoints.abort(membership):
            state.drop(given_up)
        state.channels.rewind()
        state.members.rewind()
        members = state.members
        told = [process for process in members.all if process in members.attached or process in dict(membership.members)]
        members.attached.clear()
        state.attach(told)
        self._begin_waiting(recovering=True)
        state.begin_taking()

    def _begin_waiting(self, *, recovering: bool) -> None:
        self._checkpoint_end.begin(self._state.now, recovering=recovering)
        self._state.intake.paused = False

    def end(self, refusal: Refusal) -> None:
        """Nobody takes rows any more, and all that is not sent is given up (rule CH8); a sent slot is decided first (rule RO2).

        Writers are released under the generation that they know, so that their clients hear why.
        """
        state = self._state
        state.draining = True
        for process in state.members.all:
            state.tell(process, Detach(refusal))
            state.members.remove(process)
        for given_up in state.checkpoints.abort(state.memberships.membership(1, [])):
            state.drop(given_up)
        state.channels.rewind()
        state.members.attached.clear()
        self._begin_waiting(recovering=False)

    def release(self) -> None:
        """Writers that leave are free when their last checkpoint is over; the table is when all are."""
        state = self._state
        busy = state.checkpoints.busy
        for process in state.members.all if state.draining else state.members.leaving:
            if process not in busy and not state.channels.holds_of(process):
                state.tell(process, Detach())
                state.members.remove(process)
        done = state.checkpoints.over and not (state.members.all or state.channels.in_slot)
        if state.draining and done and not self._drained:
            self._drained = True
            state.out.append(Drained())
