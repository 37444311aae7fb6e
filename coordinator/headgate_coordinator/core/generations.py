"""Begins a generation with the connected writers, draws a border after each checkpoint, and ends it. Pure."""

from headgate_coordinator.core.checkpoint_trigger import CheckpointTrigger
from headgate_coordinator.core.checkpoints import Phase
from headgate_coordinator.core.instructions import Alarm, AskLog, Barrier, Detach, Drained, Refusal
from headgate_coordinator.core.refusals import HANDING_OVER, MOVED
from headgate_coordinator.core.table_state import TableState


class Generations:
    """The generations of one table."""

    def __init__(self, state: TableState, checkpoint_trigger: CheckpointTrigger) -> None:
        self._state = state
        self._checkpoint_trigger = checkpoint_trigger
        self._drained = False

    def begin_first_checkpoint(self) -> None:
        """Gives the filling checkpoint members when the first writers come."""
        state = self._state
        if not state.checkpoints.filling.members and (eligible := state.eligible):
            state.checkpoints.begin_first(
                state.next_membership(state.checkpoints.filling.number, eligible, state.checkpoints.behind)
            )
            state.attach_writers(state.checkpoints.filling.members)
            state.begin_intake()

    def end_checkpoint(self) -> None:
        """Draws the border: barriers to the checkpoint's members, the next membership to new ones (rules RO3, RO7)."""
        state = self._state
        checkpoints = state.checkpoints
        following = state.next_membership(
            checkpoints.filling.number + 1, state.eligible, [*checkpoints.behind, checkpoints.filling]
        )
        staying = dict(following.members)
        for process in checkpoints.filling.members:
            if process not in staying:  # its clients go before the barrier, so that none of their rows comes after it
                state.out += state.channels.end_holds_of(
                    process, HANDING_OVER if state.draining else MOVED, state.open_conditions()
                )
        for process, order in state.intake_limits.stop_orders(sorted(state.members.attached)):
            state.send_order(process, order)
        ended = checkpoints.end_filling(following, state.now)
        state.send_to_members(ended, Barrier(ended.number, following))
        state.attach_writers(process for process in staying if process not in ended.members)
        self._begin_waiting(recovering=False)
        state.begin_intake()

    def abort_generation(self, why: str) -> None:
        """Aborts everything that is not sent, and begins a new generation (rule RO2)."""
        state = self._state
        state.aborts.note_abort(why, state.now)
        state.out.append(Alarm(f"generation {state.generation} was aborted: {why}"))
        state.out.append(AskLog())  # writers that follow another owner look like writers that fail
        state.size.restart_small()
        membership = state.next_membership(
            1, state.eligible, [each for each in state.checkpoints.behind if each.phase is not Phase.FLUSHING]
        )
        for given_up in state.checkpoints.abort_generation(membership):
            state.drop_transaction(given_up)
        state.channels.drop_opens_and_holds()
        state.members.drop_uncommitted()
        members = state.members
        attached = [
            process for process in members.processes if process in members.attached or process in dict(membership.members)
        ]
        members.attached.clear()
        state.attach_writers(attached)
        self._begin_waiting(recovering=True)
        state.begin_intake()

    def _begin_waiting(self, *, recovering: bool) -> None:
        self._checkpoint_trigger.begin_wait(self._state.now, recovering=recovering)
        self._state.intake_limits.paused = False

    def end_ownership(self, refusal: Refusal) -> None:
        """Detaches all writers and aborts what is not sent (rule CH8); a sent slot is decided first (rule RO2).

        Writers are detached under the generation that they know, so that their clients get the refusal.
        """
        state = self._state
        state.draining = True
        for process in state.members.processes:
            state.send_order(process, Detach(refusal))
            state.members.remove_member(process)
        for given_up in state.checkpoints.abort_generation(state.memberships.next_membership(1, [])):
            state.drop_transaction(given_up)
        state.channels.drop_opens_and_holds()
        state.members.attached.clear()
        self._begin_waiting(recovering=False)

    def detach_leaving(self) -> None:
        """Detaches writers that leave once their last checkpoint is over; a draining table ends once all are detached."""
        state = self._state
        busy = state.checkpoints.busy_processes
        for process in state.members.processes if state.draining else state.members.leaving_processes:
            if process not in busy and not state.channels.has_holds_of(process):
                state.send_order(process, Detach())
                state.members.remove_member(process)
        done = state.checkpoints.is_over and not (state.members.processes or state.channels.waits_for_slot)
        if state.draining and done and not self._drained:
            self._drained = True
            state.out.append(Drained())
