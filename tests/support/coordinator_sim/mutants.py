"""TableCoordinators that break one rule each: the simulation has to find every one of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headgate_coordinator import events, instructions
from headgate_coordinator.channels import Channels, Live, Record, Standing
from headgate_coordinator.instructions import Adopt, Instruction
from headgate_coordinator.policy import RoundPolicy
from headgate_coordinator.rounds import Phase, Round
from headgate_coordinator.table_coordinator import TableCoordinator


class AbortsOneRoundOnly(TableCoordinator):
    """RO2: what lies behind an aborted round is kept, and no generation begins."""

    def _abort(self, why: str) -> None:
        flushing = self._flushing()
        if flushing is None or flushing.phase is Phase.SENT:
            super()._abort(why)
        else:
            self._drop(flushing)
            self._older = None


class ForgetsSentRounds(TableCoordinator):
    """RO2: a round whose slot is sent counts as aborted, and opens are answered before it is decided."""

    def _abort(self, why: str) -> None:
        super()._abort(why)
        self._older = None


class AnswersWhileUndecided(TableCoordinator):
    """RO2: a sent round is decided, but channels are answered before it is."""

    def _standing(self) -> Standing:
        return replace(super()._standing(), blocked=False)


class HearsOldGenerations(TableCoordinator):
    """RO2: a message of an older generation counts."""

    def _of_generation(self, event: Any) -> None:
        super()._of_generation(replace(event, generation=self._generation))


class CommitsWithoutAllFiles(TableCoordinator):
    """EX2, RO3: a round is committed when every ingest side is through with it."""

    def _advance(self) -> None:
        flushing = self._flushing()
        if flushing is not None and flushing.phase is Phase.FLUSHING and len(flushing._passed) == len(flushing.members):
            for process in flushing.members:
                flushing._flushed.setdefault(process, events.Flushed(process, self._generation, flushing.number, (), {}))
        super()._advance()


class IssuesInstantsAsAsked(TableCoordinator):
    """TM5: a younger round gets its instant first when it asks first."""

    def _instant_asked(self, number: int) -> None:
        for each in (self._flushing(), self._filling):
            if each is not None and each.number == number and not each.instant_asked:
                each.instant_asked = True
                self._out.append(instructions.IssueInstant(each.generation, number))


class KeepsUnusedInstants(TableCoordinator):
    """RO5: a round without files that has an instant keeps it."""

    def _drop(self, each: Round) -> None:
        if each.phase is not Phase.FLUSHING or each.files:
            super()._drop(each)


class IgnoresLosses(TableCoordinator):
    """RO8: a writer that vanishes and comes back goes on in the generation that it had a part in."""

    def _lost(self, process: str, why: str) -> None:
        """Nothing aborts."""

    def _joined(self, event: events.WriterJoined) -> None:
        known = event.process in self._members
        super()._joined(event)
        if known and event.process in self._filling.members:
            self._tell(event.process, Adopt(self._filling.plan))


class GoesOnWithoutLost(TableCoordinator):
    """RO8: a round goes on without a member that was lost."""

    def _lost(self, process: str, why: str) -> None:
        self._members.remove(process)
        self._members.adopted.discard(process)
        for each in self._rounds():
            each.members.pop(process, None)


class SendsBarriersEarly(TableCoordinator):
    """RO1: the next barrier does not wait until the older round is decided."""

    def _may_end(self) -> bool:
        older = self._older
        if older is not None and older.phase is Phase.SENT and older.generation == self._generation:
            self._older = None  # two rounds behind the filling one
            self._kept = [*getattr(self, "_kept", ()), older]
        return super()._may_end()

    def _of_slot(self, event: Any) -> None:
        for each in getattr(self, "_kept", ()):
            if (each.generation, each.number) == (event.generation, event.round) and isinstance(event, events.SlotWon):
                older, self._older = self._older, each
                super()._of_slot(event)
                self._older = older
                return
        super()._of_slot(event)


class _WithChannels(TableCoordinator):
    """Another registry."""

    registry: type[Channels]

    def __init__(
        self, epoch: int, channels: Mapping[str, Sequence[Any]], policy: RoundPolicy, key_groups: int, now: float
    ) -> None:
        super().__init__(epoch, channels, policy, key_groups, now)
        self._channels = self.registry(channels)


class _GrantsBesideHolds(Channels):
    def _look(self, name: str, standing: Standing) -> Iterator[Instruction]:
        live = self._live.get(name)
        if live is not None and live.opens:
            live.hold = None
        return super()._look(name, standing)


class EndsNoOlderWriter(_WithChannels):
    """CH3: an open is granted while another writer takes rows of the channel."""

    registry = _GrantsBesideHolds


class _DrainsNothing(Channels):
    def ended(self, event: events.ChannelEnded, last_round: int, standing: Standing) -> Iterator[Instruction]:
        return super().ended(replace(event, uncommitted=False), last_round, standing)


class WaitsForNoRounds(_WithChannels):
    """CH3: an open is granted while rows of the older writer are in undecided rounds."""

    registry = _DrainsNothing


class _DrainsOneRoundLess(Channels):
    def ended(self, event: events.ChannelEnded, last_round: int, standing: Standing) -> Iterator[Instruction]:
        return super().ended(event, last_round - 1, standing)


class WaitsForOneRoundLess(_WithChannels):
    """CH3: an open waits for the flushing round only."""

    registry = _DrainsOneRoundLess


class _RaisesInMemory(Channels):
    def _raised(self, name: str, request: events.OpenRequested) -> tuple[int, int, str]:
        record = self._records.get(name, Record(0, 0, request.principal))
        live = self._live.get(name, Live())
        return (max(1, record.incarnation) if live.opens else record.incarnation), record.committed, record.principal

    def _grant(self, request: events.OpenRequested, live: Live, standing: Standing) -> Instruction:
        record = self._records[request.channel]
        if request.incarnation == 0 and live.drain >= 0:
            self._records[request.channel] = replace(record, incarnation=record.incarnation + 1)
        return super()._grant(request, live, standing)


class RaisesInMemoryOnly(_WithChannels):
    """CH4: a new incarnation is told before any slot holds it."""

    registry = _RaisesInMemory


class _RaisesBeforeDraining(Channels):
    def _look(self, name: str, standing: Standing) -> Iterator[Instruction]:
        live = self._live.get(name)
        unraised = name not in self._raises and name not in self._in_slot
        if live is not None and live.opens and live.hold is None and unraised and live.opens[0].incarnation == 0:
            self._raises[name] = live.opens[0]
        return super()._look(name, standing)

    def offsets_won(self, number: int, standing: Standing) -> Iterator[Instruction]:
        for name, request in self._in_slot.items():
            live = self._live.get(name, Live())
            if live.opens and live.opens[0] is request:
                live.opens[0] = replace(request, incarnation=self._raised(name, request)[0])
        return super().offsets_won(number, standing)


class RaisesBeforeDraining(_WithChannels):
    """CH3, CH4: the slot of the new incarnation is written while rows of the older one may still be committed."""

    registry = _RaisesBeforeDraining


class _TakesAnyIncarnation(Channels):
    def _refusal(self, request: events.OpenRequested, standing: Standing) -> instructions.Refusal | None:
        record = self._records.get(request.channel)
        known = replace(request, incarnation=record.incarnation) if request.incarnation and record else request
        return super()._refusal(known, standing)


class TakesAnyIncarnation(_WithChannels):
    """CH4: a reconnect with an older incarnation is granted."""

    registry = _TakesAnyIncarnation
