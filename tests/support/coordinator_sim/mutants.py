"""TableCoordinators that break one rule each: the simulation has to find every one of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from headgate_coordinator.core import events, instructions
from headgate_coordinator.core.channels import ChannelRegistry
from headgate_coordinator.core.checkpoint_commits import CheckpointCommits
from headgate_coordinator.core.checkpoints import Checkpoint, Phase
from headgate_coordinator.core.instructions import Attach, Instruction
from headgate_coordinator.core.live_channels import Hold, LiveChannel, OpenConditions
from headgate_coordinator.core.reconciling import Disagreement, ForeignOffset, Imbalance
from headgate_coordinator.core.refusals import TAKEN_OVER
from headgate_coordinator.core.sequence import CheckpointSequence
from headgate_coordinator.core.table_coordinator import TableCoordinator


class Trusting(TableCoordinator):
    """RO10: it commits what does not add up. Others build on it: RO10 would keep the rows that their broken rules lose."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.commits._reconcile = lambda complete: ""  # type: ignore[method-assign]


class _Overlooking(CheckpointCommits):
    kind: type

    def _reconcile(self, complete: Checkpoint) -> str:
        right = complete.reconcile
        complete.reconcile = lambda: [each for each in right() if not isinstance(each, self.kind)]  # type: ignore[method-assign]
        return super()._reconcile(complete)


class _Overlooks(TableCoordinator):
    """Findings of this kind do not count."""

    kind: type

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        commits = self.commits = _Overlooking(self._state)
        commits.kind = self.kind


class ComparesNoPairs(_Overlooks):
    """RO10: what ingest sides handed over is not compared with what bucket sides received."""

    kind = Disagreement


class ComparesNoWrites(_Overlooks):
    """RO10: what bucket sides received is not compared with what they wrote."""

    kind = Imbalance


class TakesForeignOffsets(_Overlooks):
    """RO10: a writer may report offsets of channels that others hold."""

    kind = ForeignOffset


class ExcludesNobody(TableCoordinator):
    """RO10, RO11, RO13: a writer whose reports do not add up, that passes no barrier, or that fails, keeps its part."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._state.members.exclude = lambda process, why, until=None: None  # type: ignore[method-assign]


class ExcludesTheSlow(TableCoordinator):
    """RO11: a writer that held up one checkpoint has no part in the table any more."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._state.records.note_late = lambda silent: bool(silent)  # type: ignore[method-assign]


class BlamesOneOfMany(TableCoordinator):
    """RO11: of writers that hold up checkpoints together one is excluded."""

    def _give_up_what_is_late(self) -> None:
        flushing = self._state.checkpoints.flushing
        if flushing is not None:
            silent = sorted(flushing.members.keys() - flushing._passed.keys())
            flushing._passed |= dict.fromkeys(silent[1:], events.BarrierPassed("", 0, 0, {}, 0))
        super()._give_up_what_is_late()


class AbortsOneCheckpointOnly(TableCoordinator):
    """RO2: what lies behind an aborted checkpoint is kept, and no generation begins."""

    def _abort(self, why: str) -> None:
        flushing = self._state.checkpoints.flushing
        if flushing is None or flushing.phase is Phase.SENT:
            super()._abort(why)
        else:
            self._state.drop_transaction(flushing)
            self._state.checkpoints.older = None


class ForgetsSentCheckpoints(TableCoordinator):
    """RO2: a checkpoint whose slot is sent counts as aborted, and opens are answered before it is decided."""

    def _abort(self, why: str) -> None:
        super()._abort(why)
        self._state.checkpoints.older = None


class AnswersWhileUndecided(TableCoordinator):
    """RO2: a sent checkpoint is decided, but channels are answered before it is."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        standing = self._state.open_conditions
        self._state.open_conditions = lambda: replace(standing(), blocked=False)  # type: ignore[method-assign]


class HearsOldGenerations(Trusting):
    """RO2: a message of an older generation counts."""

    def _of_generation(self, event: Any) -> None:
        super()._of_generation(replace(event, generation=self.generation))


class CommitsWithoutAllFiles(TableCoordinator):
    """EX2, RO3: a checkpoint is committed when every ingest side is through with it."""

    def _advance(self) -> None:
        flushing = self._state.checkpoints.flushing
        if flushing is not None and len(flushing._passed) == len(flushing.members):
            for process in set(flushing.members) - set(flushing._flushed):
                flushing.note_report(events.Flushed(process, self.generation, flushing.number, (), {}), self._state.now)
        super()._advance()


class _AsAsked(CheckpointSequence):
    def want_instant(self, number: int) -> None:
        named = self.find(self.generation, number)
        if named is not None:
            named.instant_wanted = True


class IssuesInstantsAsAsked(TableCoordinator):
    """TM5: a younger checkpoint gets its instant first when it asks first."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._state.checkpoints = _AsAsked()


class KeepsUnusedInstants(TableCoordinator):
    """RO5: a checkpoint without files that has an instant keeps it."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        drop = self._state.drop_transaction

        def drop_what_has_files(each: Checkpoint) -> None:
            if each.phase is not Phase.FLUSHING or each.files:
                drop(each)

        self._state.drop_transaction = drop_what_has_files  # type: ignore[method-assign]


class _AtOnce(CheckpointCommits):
    def _publish_empty(self) -> None:
        for each in list(self._state.checkpoints.unpublished):
            if not each.needs_slot:
                self._published(each)


class PublishesEmptyCheckpointsAtOnce(TableCoordinator):
    """RO5: a checkpoint that wrote nothing is told as queryable though one behind it is not published yet."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.commits = _AtOnce(self._state)


class IgnoresLosses(Trusting):
    """RO8: a writer that vanishes and comes back goes on in the generation that it had a part in."""

    def _lost(self, process: str, why: str) -> None:
        """Nothing aborts."""

    def _joined(self, event: events.WriterJoined) -> None:
        known = event.process in self._state.members
        super()._joined(event)
        if known and event.process in self._state.checkpoints.filling.members:
            self._state.send_order(event.process, Attach(self._state.checkpoints.filling.membership))


class GoesOnWithoutTheLost(TableCoordinator):
    """RO8: a checkpoint goes on without a member that was lost."""

    def _lost(self, process: str, why: str) -> None:
        self._state.members.remove_member(process)
        self._state.members.attached.discard(process)
        for each in (self._state.checkpoints.filling, self._state.checkpoints.flushing):
            if each is not None:
                each.members.pop(process, None)


class SendsBarriersEarly(TableCoordinator):
    """RO1: the next barrier does not wait until the older checkpoint is decided."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._sent: list[Checkpoint] = []

    def _may_end(self) -> bool:
        older = self._state.checkpoints.flushing
        if older is not None and older.phase is Phase.SENT:
            self._sent.append(older)
            self._state.checkpoints.older = None
        return super()._may_end()

    def _of_checkpoint(self, event: Any) -> None:
        named = [each for each in self._sent if (each.generation, each.number) == (event.generation, event.checkpoint)]
        older = self._state.checkpoints.older
        if named and isinstance(event, events.SlotWon):
            self._state.checkpoints.older = named[0]
            super()._of_checkpoint(event)
            self._state.checkpoints.older = older
        else:
            super()._of_checkpoint(event)


class CountsNoCheckpointsUnderWay(TableCoordinator):
    """Backpressure: what checkpoints may still add to slices is not counted before a further one takes rows."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        membership = self._state.next_membership
        self._state.next_membership = lambda number, members, before: membership(number, members, ())  # type: ignore[method-assign]


class CommitsUncounted(TableCoordinator):
    """Backpressure: a new owner commits before it knows how full the slices are."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._state.intake_limits.backpressure.has_room_for = lambda filling: True  # type: ignore[method-assign]


class NeverAsksTheLog(TableCoordinator):
    """R1: an owner learns only from a slot that it wants to win that it is deposed."""

    def handle_event(self, event: Any, now: float) -> list[Instruction]:
        return [each for each in super().handle_event(event, now) if not isinstance(each, instructions.AskLog)]


class AsksOnlyBehindAborts(TableCoordinator):
    """R1: leases that were lost and writers that obey another owner are no reason to ask."""

    def _doubt(self, event: Any) -> None:
        """Nothing is asked."""


class HearsNoLoads(TableCoordinator):
    """RO7: uncommitted rows ask for no checkpoint."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._checkpoint_trigger.note_uncommitted = lambda filling, uncommitted, now: None  # type: ignore[method-assign]


class GivesUpWhatGoesOn(TableCoordinator):
    """RO7: a checkpoint has a fixed time, whatever goes on."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        late_at = self._checkpoint_trigger.flush_deadline

        def late_at_a_fixed_time(flushing: Checkpoint | None) -> float | None:
            if flushing is not None:
                flushing.progressed_at = flushing.barrier_at
            return late_at(flushing)

        self._checkpoint_trigger.flush_deadline = late_at_a_fixed_time  # type: ignore[method-assign]


class _WithoutPauses(CheckpointCommits):
    def _refused(self, event: Any) -> None:
        super()._refused(event)
        self._state.retry.retry_at = None


class TriesAgainAtOnce(TableCoordinator):
    """What the store refused is tried again without a pause."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.commits = _WithoutPauses(self._state)


class AnswersRightBehindAborts(TableCoordinator):
    """Clients send everything again at once, however many generations were given up in a row."""

    def _abort(self, why: str) -> None:
        super()._abort(why)
        self._state.aborts.opens_at = None


class BeginsWithLargeCheckpoints(TableCoordinator):
    """Behind an outage a checkpoint takes all that clients have kept."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._state.size.restart_small = lambda: None  # type: ignore[method-assign]


class _WithChannels(TableCoordinator):
    """Another registry."""

    registry: type[ChannelRegistry]

    def __init__(self, epoch: int, channels: Mapping[str, Sequence[Any]], *args: Any) -> None:
        super().__init__(epoch, channels, *args)
        self._state.channels = self.registry(channels, inf, 0.0)


class _GrantsBesideHolds(ChannelRegistry):
    def _look(self, name: str, standing: OpenConditions) -> Iterator[Instruction]:
        live = self._live.get(name)
        if live is not None and live.opens:
            live.hold = None
        return super()._look(name, standing)


class EndsNoOlderWriter(_WithChannels):
    """CH3: an open is granted while another writer takes rows of the channel."""

    registry = _GrantsBesideHolds


class _DrainsNothing(ChannelRegistry):
    def end_hold(self, event: events.ChannelEnded, last_checkpoint: int, standing: OpenConditions) -> Iterator[Instruction]:
        return super().end_hold(replace(event, uncommitted=False), last_checkpoint, standing)


class WaitsForNoCheckpoints(_WithChannels):
    """CH3: an open is granted while rows of the older writer are in undecided checkpoints."""

    registry = _DrainsNothing


class _DrainsOneCheckpointLess(ChannelRegistry):
    def end_hold(self, event: events.ChannelEnded, last_checkpoint: int, standing: OpenConditions) -> Iterator[Instruction]:
        return super().end_hold(event, last_checkpoint - 1, standing)


class WaitsForOneCheckpointLess(_WithChannels):
    """CH3: an open waits for the flushing checkpoint only."""

    registry = _DrainsOneCheckpointLess


class _TellsBeforeTheSlot(ChannelRegistry):
    def _look(self, name: str, standing: OpenConditions) -> Iterator[Instruction]:
        live = self._live.get(name)
        told = super()._look(name, standing)
        yield from told
        if live is not None and self._raises.get(name) is not None and live.opens:
            self._records[name] = self._raised(name, live.opens[0])
            yield self._grant(live.opens.popleft(), live, standing)


class TellsBeforeTheSlot(_WithChannels):
    """CH4: a new incarnation is told while the slot that holds it is under way."""

    registry = _TellsBeforeTheSlot


class _RaisesBeforeDraining(ChannelRegistry):
    def _look(self, name: str, standing: OpenConditions) -> Iterator[Instruction]:
        live = self._live.get(name)
        unraised = name not in self._raises and name not in self._in_slot
        if live is not None and live.opens and live.hold is None and unraised and live.opens[0].incarnation == 0:
            self._raises[name] = live.opens[0]
        return super()._look(name, standing)

    def offsets_won(self, number: int, standing: OpenConditions) -> Iterator[Instruction]:
        for name, request in self._in_slot.items():
            live = self._live.get(name, LiveChannel())
            if live.opens and live.opens[0] is request:
                live.opens[0] = replace(request, incarnation=self._raised(name, request).incarnation)
        return super().offsets_won(number, standing)


class RaisesBeforeDraining(_WithChannels):
    """CH3, CH4: the slot of the new incarnation is written while rows of the older one may still be committed."""

    registry = _RaisesBeforeDraining


class _TakesAnyIncarnation(ChannelRegistry):
    def _refusal(self, request: events.OpenRequested, standing: OpenConditions) -> instructions.Refusal | None:
        record = self._records.get(request.channel)
        known = replace(request, incarnation=record.incarnation) if request.incarnation and record else request
        return super()._refusal(known, standing)


class TakesAnyIncarnation(_WithChannels):
    """CH4: a reconnect with an older incarnation is granted."""

    registry = _TakesAnyIncarnation


class _FencesEarly(ChannelRegistry):
    def _end(self, name: str, hold: Hold, refusal: instructions.Refusal, standing: OpenConditions) -> Instruction:
        newest = self._live[name].opens
        fences = newest and newest[0].incarnation == 0
        return super()._end(name, hold, TAKEN_OVER if fences else refusal, standing)


class FencesBeforeTheSlot(_WithChannels):
    """CH4: a producer is told for good that it is taken over before a slot says so."""

    registry = _FencesEarly


class _RefusesUnknownIncarnations(ChannelRegistry):
    def _refusal(self, request: events.OpenRequested, standing: OpenConditions) -> instructions.Refusal | None:
        refusal = super()._refusal(request, standing)
        return TAKEN_OVER if refusal is None and request.incarnation and self._is_news(request) else refusal


class RefusesUnknownIncarnations(_WithChannels):
    """CH4: an outdated owner tells a producer that it does not know yet that it is taken over."""

    registry = _RefusesUnknownIncarnations
