"""One table's owner as a pure state machine: events in, instructions out.

It mirrors Hudi's StreamWriteOperatorCoordinator, with two checkpoints at a time: one fills, one flushes (rule RO1).
"""

from collections.abc import Mapping, Sequence
from typing import assert_never

from headgate_coordinator.core import events
from headgate_coordinator.core.alarms import StandingAlarm
from headgate_coordinator.core.checkpoint_commits import CheckpointCommits
from headgate_coordinator.core.checkpoint_trigger import CheckpointTrigger
from headgate_coordinator.core.checkpoints import Checkpoint
from headgate_coordinator.core.events import Event, OfCheckpoint, OfGeneration, OfOwnership, OfRecords, OfSlices, OfWriter
from headgate_coordinator.core.generations import Generations
from headgate_coordinator.core.instructions import MOST_EPOCHS, Alarm, AskLog, Evict, Instruction
from headgate_coordinator.core.policy import CheckpointPolicy
from headgate_coordinator.core.pressure import Pressure
from headgate_coordinator.core.reconciling import ForeignOffset
from headgate_coordinator.core.table_state import TableState


class TableCoordinator:
    """One ownership of a table. ``channels``: records of the slots, name to [incarnation, committed offset, principal, …].

    Times are monotonic seconds. Instructions are executed in order, those for the committer one after the other. After a
    deposition or an unknown outcome the object is discarded. ``figures``: of the slices now; None: nothing bounds what
    checkpoints add to a slice. ``commits``: what became of checkpoints.
    """

    def __init__(
        self,
        epoch: int,
        channels: Mapping[str, Sequence[int | str]],
        policy: CheckpointPolicy,
        key_groups: int,
        now: float,
        figures: events.SliceFigures | None = None,
    ) -> None:
        self.epoch = epoch
        self._state = TableState(channels, policy, key_groups, now, figures)
        self._checkpoint_trigger = CheckpointTrigger(policy, now)
        self.commits = CheckpointCommits(self._state)
        self._generations = Generations(self._state, self._checkpoint_trigger)

    # State, for `status`.

    @property
    def generation(self) -> int:
        """Spans without an abort, counted from 1."""
        return self._state.generation

    @property
    def checkpoint(self) -> int:
        """The checkpoint that fills, from 1 in each generation."""
        return self._state.checkpoints.filling.number

    @property
    def progressed_at(self) -> float:
        """When a checkpoint last went on or was decided; 0: never."""
        return self._state.checkpoints.progressed_at

    @property
    def refuted(self) -> int:
        """Checkpoints of this ownership that the reports of writers did not add up for (rule RO10)."""
        return self.commits.refuted

    @property
    def uncommitted_bytes(self) -> int:
        """Uncommitted Arrow bytes at all writers."""
        return sum(self._state.members.uncommitted_bytes(None))

    @property
    def channels(self) -> int:
        """Number of channels that a writer holds now."""
        return self._state.channels.hold_count

    @property
    def alarms(self) -> Sequence[StandingAlarm]:
        """Alarms for operators."""
        return self._state.alarms

    @property
    def pressure(self) -> Pressure:
        """Limits on intake that keep slices within theirs."""
        return self._state.intake_limits.pressure

    # Events.

    def handle_event(self, event: Event, now: float) -> list[Instruction]:
        """Handles one event; returns instructions to execute in order. ``now`` never goes back."""
        state = self._state
        state.now, state.out = max(now, state.now), []
        self._hear(event)
        self._advance()
        return state.out

    def deadline(self) -> float | None:
        """When the next Tick is due, later than the last ``now``; None: only an event changes anything."""
        state = self._state
        due = self._due() if self._may_end() else None
        late_at = self._checkpoint_trigger.flush_deadline(state.checkpoints.flushing)
        pauses = (state.retry.retry_at, state.aborts.opens_at, state.members.readmission_at)
        times = (state.channels.hold_deadline, late_at, due, state.aborts.forgotten_at, state.channels.look_at, *pauses)
        return min((time for time in times if time is not None), default=None)

    def _hear(self, event: Event) -> None:
        match event:
            case events.WriterJoined() | events.WritersFound() | events.WriterLost() | events.WriterLeaving():
                self._of_writer(event)
            case events.LoadReported():
                self._of_writer(event)
            case events.InstantAsked() | events.CheckpointAsked() | events.CheckpointFull():
                self._of_generation(event)
            case events.BarrierPassed() | events.Broken():
                self.commits.note_even_late(event)
                self._of_generation(event)
            case events.Flushed() | events.Progressed() | events.WaitsForRoom() | events.OpenRequested() | events.ChannelEnded():
                self._of_generation(event)
            case events.InstantIssued() | events.InstantRefused() | events.CommitRefused():
                self._of_checkpoint(event)
            case events.SlotWon() | events.Published() | events.FilesRefused():
                self._of_checkpoint(event)
            case events.OffsetsWon() | events.OffsetsRefused():
                self._of_records(event)
            case events.NewerOwnerSeen() | events.LeaseRecreated():
                self._doubt(event)
            case events.SliceFigures() | events.CompactorsCounted():
                self._count(event)
            case events.Tick():
                pass
            case events.EndAsked(refusal):
                self._generations.end_ownership(refusal)
            case events.DrainAsked():
                self._state.draining = True
                self._state.answer_opens()
            case _:
                assert_never(event)

    def _of_writer(self, event: OfWriter) -> None:
        members = self._state.members
        match event:
            case events.WriterJoined():
                self._joined(event)
            case events.WritersFound(writers):
                for writer in writers:
                    self._joined(writer)
            case events.WriterLost(process, why):
                if process in members:
                    self._lost(process, f"writer {process} was lost: {why}")
            case events.WriterLeaving(process):
                members.mark_leaving(process)
                self._state.answer_opens()
            case events.LoadReported(process, uncommitted_bytes):
                members.note_load(process, uncommitted_bytes)
            case _:
                assert_never(event)

    def _joined(self, event: events.WriterJoined) -> None:
        members = self._state.members
        if event.process in members or event.process in members.attached:
            self._lost(event.process, f"writer {event.process} came back")
        dead = members.add_member(event.process, event.address)
        self._state.out += [Evict(other, f"process {event.process} has its address {event.address}") for other in dead]

    def _lost(self, process: str, why: str) -> None:
        self._state.members.remove_member(process)
        if process in self._state.members.attached:  # rule RO8
            self._abort(why)

    def _of_generation(self, event: OfGeneration) -> None:
        """From a writer, under a generation: events of another one are ignored (rule RO2)."""
        state = self._state
        if event.generation != state.generation or not state.members.takes_part(event.process):
            return
        match event:
            case events.OpenRequested():
                state.out += state.channels.request_open(event, state.open_conditions())
            case events.ChannelEnded():
                state.out += state.channels.end_hold(event, state.checkpoints.youngest_of(event.process), state.open_conditions())
            case events.CheckpointAsked():
                self._checkpoint_trigger.requested = True
            case events.CheckpointFull():
                if event.checkpoint == state.checkpoints.filling.number:
                    self._checkpoint_trigger.requested = state.intake_limits.paused = True
                    state.send_throttles()
            case events.InstantAsked():
                state.checkpoints.want_instant(event.checkpoint)
            case events.Broken():
                self._abort(f"writer {event.process} could not go on: {event.why}")
            case events.BarrierPassed() | events.Flushed() | events.Progressed() | events.WaitsForRoom():
                if (flushing := state.checkpoints.flushing) is not None and flushing.number == event.checkpoint:
                    self._note_report(flushing, event)
            case _:
                assert_never(event)

    def _note_report(self, flushing: Checkpoint, event: events.OfFlush) -> None:
        if isinstance(event, events.BarrierPassed):
            foreign = self._state.channels.foreign_offsets(event.process, event.offsets)
            flushing.findings += [ForeignOffset(event.process, channel) for channel in foreign]
        flushing.note_report(event, self._state.now)

    def _of_checkpoint(self, event: OfCheckpoint) -> None:
        named = self._state.checkpoints.find(event.generation, event.checkpoint)
        if named is not None:  # else it was aborted before
            self.commits.handle_answer(named, event)

    def _of_records(self, event: OfRecords) -> None:
        state = self._state
        match event:
            case events.OffsetsWon(number):
                state.out += state.channels.offsets_won(number, state.open_conditions())
            case events.OffsetsRefused(number, why):
                state.out.append(Alarm(f"channel records were refused: {why}"))
                state.out += state.channels.offsets_refused(number, state.open_conditions())
            case _:
                assert_never(event)

    def _doubt(self, event: OfOwnership) -> None:
        """Rule R1: the commit log decides who owns the table, neither a lease nor a writer."""
        match event:
            case events.LeaseRecreated():
                self._state.out.append(AskLog())
            case events.NewerOwnerSeen(_, epoch):
                if epoch > self.epoch:
                    self._state.out.append(AskLog(min(epoch, self.epoch + MOST_EPOCHS)))
            case _:
                assert_never(event)

    def _count(self, event: OfSlices) -> None:
        state = self._state
        match event:
            case events.SliceFigures():
                state.intake_limits.note_figures(event)
            case events.CompactorsCounted(count):
                state.intake_limits.backpressure.compactors = count
            case _:
                assert_never(event)
        state.intake_limits.resume_if_room(state.checkpoints.filling, state.checkpoints.behind)
        state.send_throttles()

    # Consequences.

    def _advance(self) -> None:
        state = self._state
        self._end_pauses()
        state.forget_idle_channels()
        self._commit_what_is_complete()
        self._give_up_what_is_late()
        self._generations.begin_first_checkpoint()
        self._checkpoint_trigger.note_uncommitted(state.checkpoints.filling, state.uncommitted, state.now)
        state.aborts.note_rest(resting=state.is_resting, now=state.now)
        due = self._due() if self._may_end() else None
        if due is not None and due <= state.now:
            self._generations.end_checkpoint()
        if not state.retry.waits:
            state.out += state.checkpoints.next_instant()
        if state.draining and state.checkpoints.filling.members and not state.intake_limits.paused:
            # Its barrier has to wait, and rows that come meanwhile would have to be flushed before the table is handed over.
            state.intake_limits.paused = True
            state.send_throttles()
        self._generations.detach_leaving()

    def _commit_what_is_complete(self) -> None:
        flushing = self._state.checkpoints.flushing
        if flushing and flushing.is_complete and not self._state.retry.waits and (why := self.commits.send_commit(flushing)):
            self._abort(why)

    def _end_pauses(self) -> None:
        self._state.retry.end_pause(self._state.now)
        self._state.members.readmit(self._state.now)
        if self._state.aborts.end_pause(self._state.now):
            self._state.answer_opens()

    def _give_up_what_is_late(self) -> None:
        state = self._state
        if why := self.commits.why_late(self._checkpoint_trigger):
            self._abort(why)
        for process, channel in state.channels.overdue_writers(state.now).items():
            if state.members.mark_evicted(process):
                state.out.append(Evict(process, f"it did not let channel {channel!r} go within {state.policy.writer_timeout} s"))

    def _may_end(self) -> bool:
        return self._checkpoint_trigger.allows_barrier(self._state.checkpoints, self._state.intake_limits.backpressure)

    def _due(self) -> float | None:
        state = self._state
        filling = state.checkpoints.filling
        moving = dict(state.eligible).keys() != filling.members.keys()
        at_once = moving or state.draining or state.channels.awaited_checkpoint >= filling.number
        return self._checkpoint_trigger.barrier_due_at(
            filling, at_once=at_once, uncommitted=state.uncommitted, stretch=state.intake_limits.pressure.stretch
        )

    def _abort(self, why: str) -> None:
        self.commits.exclude_failing()
        self._generations.abort_generation(why)
