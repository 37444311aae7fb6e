"""Takes complete checkpoints to the committer, and acts on its answers until readers see the checkpoint. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from headgate_coordinator.core import events
from headgate_coordinator.core.checkpoint_trigger import CheckpointTrigger
from headgate_coordinator.core.checkpoints import Checkpoint, Phase
from headgate_coordinator.core.events import CommitRefused, InstantRefused, OfCheckpoint
from headgate_coordinator.core.failing_writers import FAILING_SPAN_S
from headgate_coordinator.core.instructions import Alarm, CommitCheckpoint, Decided, UseInstant
from headgate_coordinator.core.reconciling import Finding, writers_at_fault
from headgate_coordinator.core.row_rate import RowRate
from headgate_coordinator.core.table_state import TableState
from headgate_coordinator.core.writer_records import SILENT_AT

MOST_NAMED: Final = 3
"""Findings that an alarm spells out: with many writers a false one disagrees with all of them."""
MOST_TEXT: Final = 400
"""Characters of each: names in it are the writer's word."""


@dataclass(frozen=True, slots=True)
class LastCheckpoint:
    """The newest published checkpoint with rows: seconds from barrier to publication, files, Arrow bytes."""

    seconds: float = 0.0
    files: int = 0
    nbytes: int = 0


class CheckpointCommits:
    """Decides one table's checkpoints in their order (rules RO1, RO2, RO5). ``refuted``: how many did not add up (rule RO10).

    ``last``: the newest published one with rows. ``rate``: of all of them.
    """

    def __init__(self, state: TableState) -> None:
        self.last = LastCheckpoint()
        self.rate = RowRate()
        self.refuted = 0
        self._state = state

    @property
    def waiting_since(self) -> float | None:
        """Since when the oldest rows wait that readers do not see yet, monotonic seconds; None: there are none."""
        return self._state.checkpoints.dirty_since

    def send_commit(self, complete: Checkpoint) -> str:
        """Commits rows and offsets in one slot, offsets alone in one without an instant, and writes no slot for nothing (rule
        RO5).

        Returns why the generation has to be aborted instead, because it does not add up (rule RO10); "": it need not be.
        """
        state = self._state
        if why := self._reconcile(complete):
            return why
        complete.channels = state.channels.grown_records(complete.offsets)
        files = complete.files
        if not state.retry.why:
            state.size.note_flush(complete.membership.intake_bytes, complete.largest_intake, state.now - complete.barrier_at)
        if not files:
            state.drop_transaction(complete)
        if complete.needs_slot:
            complete.phase = Phase.SENT
            state.out.append(CommitCheckpoint(complete.generation, complete.number, files, complete.channels))
        else:
            self._won(complete)
            self._publish_empty()
        return ""

    def _reconcile(self, complete: Checkpoint) -> str:
        """Returns what does not add up; "": everything does. Excludes writers that are at fault again (rule RO10)."""
        state = self._state
        findings = complete.reconcile()
        if not findings:
            state.records.note_agreement(complete.movers)
            return ""
        self.refuted += 1
        why = _summary(findings)
        for process in writers_at_fault(findings, complete.members, state.records.agreed):
            if state.records.note_fault(process):
                self._exclude(process, complete.members[process], why)
        return f"the reports of writers do not add up: {why}"

    def why_late(self, trigger: CheckpointTrigger) -> str:
        """Returns why the flushing checkpoint has to be aborted now; "": it need not be. Excludes a writer that alone held up one
        after the other (rule RO11).
        """
        state = self._state
        late = state.checkpoints.flushing
        if late is None or not (why := trigger.why_late(late, state.now)):
            return ""
        silent = late.silent_writer
        if state.records.note_late(silent):
            self._exclude(silent, late.members[silent], f"it alone did not pass the barriers of {SILENT_AT} checkpoints in a row")
        return why

    def note_even_late(self, event: events.BarrierPassed | events.Broken) -> None:
        """Notes what a report says of its writer, also when another one has aborted that generation (rules RO11, RO13).

        What the store refuses the owner, it may refuse a writer, so that is no failure.
        """
        state = self._state
        match event:
            case events.BarrierPassed():
                state.records.note_passed(event.process)
            case events.Broken():
                if event.own and event.process in state.members and not state.retry.why:
                    state.failing.note_failure(event.process, event.why, state.now)
            case _:
                assert_never(event)

    def exclude_failing(self) -> None:
        """At an abort: excludes for a while a writer that fails again and again while others do not (rule RO13)."""
        state = self._state
        members = dict(state.eligible)
        failing = state.failing.find_failing(members, len(state.members.paused), state.now)
        if failing is None:
            return
        if failing.is_alone:
            what = f"it could not go on {failing.times} times within {FAILING_SPAN_S:.0f} s, and others could"
            why = f"{what}; the last time: {failing.why[:MOST_TEXT]}. Keep its log; if it fails again, restart or replace it"
            until = state.failing.note_exclusion(failing.process, state.now)
            self._exclude(failing.process, members[failing.process], why, until)
        elif readmitted := state.members.readmit():
            state.failing.forget_exclusions()
            others = f"writer {failing.process} could not go on either: {failing.why[:MOST_TEXT]}"
            state.out.append(Alarm(f"excluded writers have a part again ({', '.join(readmitted)}), because {others}"))

    def _exclude(self, process: str, address: str, why: str, until: float | None = None) -> None:
        """Unless the table has no other writer. ``until``: see ``Exclusion``."""
        state = self._state
        if any(other != process for other, _ in state.eligible):
            state.members.exclude(process, why, until)
            state.out.append(Alarm(f"writer {process} at {address} is excluded: {why}"))

    def handle_answer(self, named: Checkpoint, event: OfCheckpoint) -> None:
        """Handles the committer's answer about that checkpoint."""
        state = self._state
        match event:
            case events.InstantIssued():
                named.note_instant(state.now)
                if state.checkpoints.flushing is None or not state.checkpoints.flushing.is_complete:
                    state.retry.note_success()
                state.send_to_members(named, UseInstant(event.checkpoint, event.instant))
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
                if self._undecided(named):
                    self._refused(event)
            case events.FilesRefused(_, _, why):
                if self._undecided(named):
                    named.note_false_files(why)
            case _:
                assert_never(event)

    def _won(self, won: Checkpoint) -> None:
        state = self._state
        state.checkpoints.mark_won(won)
        state.checkpoints.note_decision(state.now)
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
        state.checkpoints.note_decision(state.now)
        state.send_to_members(published, Decided(published.number, queryable=True))
        if published.needs_slot:
            began = published.barrier_at if published.dirty_since is None else published.dirty_since
            self.rate.note_published(published.rows, began, state.now)
            self.last = LastCheckpoint(state.now - published.barrier_at, len(published.files), published.bytes)
        state.intake_limits.backpressure.note_published(published)
        state.answer_opens()

    def _publish_empty(self) -> None:
        """Publishes checkpoints without a slot once those before them are: their ack counts for all checkpoints up to them."""
        while (oldest := self._state.checkpoints.oldest_unpublished) is not None and not oldest.needs_slot:
            self._published(oldest)

    def _refused(self, event: InstantRefused | CommitRefused) -> None:
        """Tries the same again later: rows stay in memory or in files, and no client sends them again."""
        state = self._state
        if not state.retry.why:
            state.out.append(Alarm(f"checkpoint {event.checkpoint} waits, because the table's storage refused it: {event.why}"))
        state.retry.note_refusal(event.why, state.now)

    def _undecided(self, refused: Checkpoint) -> bool:
        """Nothing was decided, for certain: the checkpoint is as it was before it was sent. Returns False if it is over."""
        state = self._state
        if refused.generation == state.generation:
            refused.phase = Phase.FLUSHING
            return True
        state.drop_transaction(refused)
        state.checkpoints.older = None
        state.answer_opens()
        return False


def _summary(findings: Sequence[Finding]) -> str:
    rest = f"; {len(findings) - MOST_NAMED} more" if len(findings) > MOST_NAMED else ""
    return "; ".join(str(finding)[:MOST_TEXT] for finding in findings[:MOST_NAMED]) + rest
