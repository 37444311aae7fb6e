"""One table's owner as a pure state machine: events in, instructions out.

It mirrors Hudi's StreamWriteOperatorCoordinator, with two rounds at a time: one fills, one flushes (rule RO1).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from headgate_coordinator.aborts import Aborts
from headgate_coordinator.channels import Channels, Standing
from headgate_coordinator.events import (
    BarrierPassed,
    Broken,
    ChannelEnded,
    CommitRefused,
    CompactorsCounted,
    DrainAsked,
    EndAsked,
    Event,
    Flushed,
    InstantAsked,
    InstantIssued,
    InstantRefused,
    LeaseRecreated,
    LoadReported,
    NewerOwnerSeen,
    OffsetsRefused,
    OffsetsWon,
    OfGeneration,
    OfOwnership,
    OfRecords,
    OfRound,
    OfSlices,
    OfWriter,
    OpenRequested,
    Progressed,
    Published,
    RoundAsked,
    RoundFull,
    SliceFigures,
    SlotWon,
    Tick,
    WriterJoined,
    WriterLeaving,
    WriterLost,
    WritersFound,
)
from headgate_coordinator.instructions import (
    Adopt,
    Alarm,
    AskLog,
    Barrier,
    Commit,
    Decided,
    Drained,
    DropRound,
    Evict,
    Instant,
    Instruction,
    Order,
    Plan,
    Refusal,
    Release,
    Send,
)
from headgate_coordinator.intake import Intake
from headgate_coordinator.members import Members
from headgate_coordinator.policy import RoundPolicy, Wish
from headgate_coordinator.pressure import Pressure
from headgate_coordinator.refusals import HANDING_OVER, MOVED
from headgate_coordinator.retry import Retry
from headgate_coordinator.round_plans import RoundPlanner
from headgate_coordinator.round_size import RoundSize
from headgate_coordinator.rounds import Phase, Round
from headgate_coordinator.sequence import Rounds


class TableCoordinator:
    """Made anew for each ownership: ``channels`` is what the slots say, name to [incarnation, committed offset, principal, …].

    Times are monotonic seconds. Instructions are to be executed in order, those for the committer one after the other. After
    a deposition or an unknown outcome it is thrown away. ``figures``: of the slices as they are now; without them nothing bounds
    what rounds add to a slice.
    """

    def __init__(
        self,
        epoch: int,
        channels: Mapping[str, Sequence[Any]],
        policy: RoundPolicy,
        key_groups: int,
        now: float,
        figures: SliceFigures | None = None,
    ) -> None:
        self.epoch = epoch
        self.last_round_seconds = 0.0
        self.last_round_files = 0
        self.last_round_bytes = 0
        self._policy = policy
        self._now = now
        self._members = Members()
        self._channels = Channels(channels)
        self._planner = RoundPlanner(key_groups)
        self._intake = Intake(figures, policy.checkpoint_interval)
        self._rounds = Rounds()
        self._size = RoundSize(policy.first_round_bytes, policy.flush_target)
        if channels:  # somebody may have kept much while nobody owned the table
            self._size.restart()
        self._retry = Retry(policy)
        self._aborts = Aborts(policy)
        self._asked = False
        self._dirty_since: float | None = None
        self._since = now
        self._recovering = True
        self._draining = False
        self._drained = False
        self._out: list[Instruction] = []

    # What `status` shows.

    @property
    def generation(self) -> int:
        """Spans without an abort, counted from 1."""
        return self._rounds.generation

    @property
    def round(self) -> int:
        """The round that fills, from 1 in each generation."""
        return self._rounds.filling.number

    @property
    def uncommitted_bytes(self) -> int:
        """Arrow bytes that the writers hold."""
        return sum(self._members.uncommitted(None))

    @property
    def channels(self) -> int:
        """Channels that a writer holds now."""
        return self._channels.held

    @property
    def alarms(self) -> Sequence[str]:
        """What an operator should know now."""
        alarms = [] if self._rounds.filling.members or self._draining else ["no writer takes part in the table"]
        return [*alarms, *self._aborts.alarms(self._now), *self._intake.ladder.alarms]

    @property
    def pressure(self) -> Pressure:
        """What is done so that slices stay within their limits."""
        return self._intake.pressure

    # What happens.

    def handle(self, event: Event, now: float) -> list[Instruction]:
        """One event. Returns what is to be done, in order. ``now`` never goes back."""
        self._now = max(now, self._now)
        self._out = []
        self._hear(event)
        self._advance()
        return self._out

    def deadline(self) -> float | None:
        """When a Tick is due, if nothing else happens before; later than the last ``now``."""
        due = self._due() if self._may_end() else None
        times = (self._channels.deadline, self._round_deadline(), self._retry.at, self._aborts.opens_at, due)
        return min((time for time in times if time is not None), default=None)

    def _hear(self, event: Event) -> None:
        match event:
            case WriterJoined() | WritersFound() | WriterLost() | WriterLeaving() | LoadReported():
                self._of_writer(event)
            case InstantAsked() | RoundAsked() | BarrierPassed() | Flushed() | Progressed() | RoundFull() | Broken():
                self._of_generation(event)
            case OpenRequested() | ChannelEnded():
                self._of_generation(event)
            case InstantIssued() | InstantRefused() | SlotWon() | Published() | CommitRefused():
                self._of_round(event)
            case OffsetsWon() | OffsetsRefused():
                self._of_records(event)
            case NewerOwnerSeen() | LeaseRecreated():
                self._doubt(event)
            case SliceFigures() | CompactorsCounted():
                self._count(event)
            case Tick():
                pass
            case EndAsked(refusal):
                self._end(refusal)
            case DrainAsked():
                self._draining = True
                self._look_at_opens()
            case _:
                assert_never(event)

    def _of_writer(self, event: OfWriter) -> None:
        match event:
            case WriterJoined():
                self._joined(event)
            case WritersFound(writers):
                for writer in writers:
                    self._joined(writer)
            case WriterLost(process, why):
                if process in self._members:
                    self._lost(process, f"writer {process} was lost: {why}")
            case WriterLeaving(process):
                self._members.leave(process)
                self._look_at_opens()
            case LoadReported(process, uncommitted_bytes):
                self._members.report(process, uncommitted_bytes)
            case _:
                assert_never(event)

    def _of_records(self, event: OfRecords) -> None:
        match event:
            case OffsetsWon(number):
                self._out += self._channels.offsets_won(number, self._standing())
            case OffsetsRefused(number, why):
                self._out.append(Alarm(f"channel records were refused: {why}"))
                self._out += self._channels.offsets_refused(number, self._standing())
            case _:
                assert_never(event)

    def _doubt(self, event: OfOwnership) -> None:
        """Rule R1: neither a lease nor a writer decides who owns the table, the log does."""
        match event:
            case LeaseRecreated():
                self._out.append(AskLog())
            case NewerOwnerSeen(_, epoch):
                if epoch > self.epoch:
                    self._out.append(AskLog())
            case _:
                assert_never(event)

    def _joined(self, event: WriterJoined) -> None:
        if event.process in self._members or event.process in self._members.adopted:
            self._lost(event.process, f"writer {event.process} came back")
        for other in self._members.join(event.process, event.address):
            self._out.append(Evict(other, f"process {event.process} has its address {event.address}"))

    def _lost(self, process: str, why: str) -> None:
        self._members.remove(process)
        if process in self._members.adopted:  # rule RO8
            self._abort(why)

    def _of_generation(self, event: OfGeneration) -> None:
        """From a writer, under a generation: one of another is refused (rule RO2)."""
        if event.generation != self.generation or event.process not in self._members:
            return
        match event:
            case OpenRequested():
                self._out += self._channels.open(event, self._standing())
            case ChannelEnded():
                self._out += self._channels.ended(event, self._last_round_of(event.process), self._standing())
            case RoundAsked():
                self._asked = True
            case RoundFull():
                if event.round == self._rounds.filling.number:
                    self._asked = self._intake.paused = True
                    self._tell_pace()
            case InstantAsked():
                self._rounds.want_instant(event.round)
            case Broken():
                self._abort(f"writer {event.process} could not go on: {event.why}")
            case BarrierPassed() | Flushed() | Progressed():
                if (flushing := self._rounds.flushing) is not None and flushing.number == event.round:
                    flushing.report(event, self._now)
            case _:
                assert_never(event)

    def _last_round_of(self, process: str) -> int:
        """The youngest round that can have rows taken by this writer: it need not have seen the last barrier yet (CH3)."""
        filling = self._rounds.filling
        return filling.number if process in filling.members else filling.number - 1

    # What the committer says.

    def _of_round(self, event: OfRound) -> None:
        named = self._rounds.find(event.generation, event.round)
        if named is None:
            return  # given up before
        match event:
            case InstantIssued():
                named.issued(self._now)
                if self._rounds.flushing is None or not self._rounds.flushing.complete:
                    self._retry.succeeded()
                self._tell_all(named, Instant(event.round, event.instant))
            case InstantRefused():
                self._drop(named)
                named.instant_asked = False
                self._refused(event)
            case SlotWon():
                self._won(named)
            case Published():
                self._published(named)
                self._publish_empty()
            case CommitRefused():
                self._commit_refused(named, event)
            case _:
                assert_never(event)

    def _won(self, won: Round) -> None:
        self._rounds.won(won)
        self._channels.committed(won.channels)
        self._planner.decided(won)
        self._aborts.decided(writes=won.writes)
        if won.writes:
            self._retry.succeeded()
        if won.generation == self.generation:
            self._members.settle(won)
        self._tell_all(won, Decided(won.number, queryable=False))

    def _published(self, published: Round) -> None:
        self._rounds.unpublished.remove(published)
        self._tell_all(published, Decided(published.number, queryable=True))
        if published.writes:
            self.last_round_seconds = self._now - published.barrier_at
            self.last_round_files = len(published.files)
            self.last_round_bytes = published.bytes
        self._intake.ladder.published(published)
        self._look_at_opens()

    def _publish_empty(self) -> None:
        """A round that wrote nothing is seen once those before it are: writers take its ack for all rounds up to it."""
        while (oldest := self._rounds.oldest_unpublished) is not None and not oldest.writes:
            self._published(oldest)

    def _refused(self, event: InstantRefused | CommitRefused) -> None:
        """Rows stay where they are, in memory or in files, and nobody has to send them again: the same is tried later."""
        if not self._retry.why:
            self._out.append(Alarm(f"round {event.round} waits, the table's storage refused it: {event.why}"))
        self._retry.refused(event.why, self._now)

    def _commit_refused(self, refused: Round, event: CommitRefused) -> None:
        """For certain nothing was decided: the round is as it was before it was sent."""
        if refused.generation == self.generation:
            refused.phase = Phase.FLUSHING
            self._refused(event)
        else:
            self._drop(refused)
            self._rounds.older = None
            self._look_at_opens()

    # What follows.

    def _advance(self) -> None:
        self._end_pauses()
        flushing = self._rounds.flushing
        if flushing is not None and flushing.complete and not self._retry.waits:
            self._commit(flushing)
        self._give_up_what_is_late()
        if not self._rounds.filling.members and (eligible := self._eligible()):
            self._rounds.fill(self._plan(self._rounds.filling.number, eligible, self._rounds.behind))
            self._adopt(self._rounds.filling.members)
            self._begin_taking()
        self._note_dirt()
        due = self._due() if self._may_end() else None
        if due is not None and due <= self._now:
            self._end_round()
        if not self._retry.waits:
            self._out += self._rounds.issue()
        if self._draining and self._rounds.filling.members and not self._intake.paused:
            # Its barrier has to wait, and what comes in meanwhile would have to be flushed before the table is handed over.
            self._intake.paused = True
            self._tell_pace()
        self._release()

    def _end_pauses(self) -> None:
        self._retry.look(self._now)
        if self._aborts.look(self._now):
            self._look_at_opens()

    def _commit(self, complete: Round) -> None:
        """Rows and offsets go into one slot; offsets alone into one without an instant; nothing writes nothing (rule RO5)."""
        try:
            complete.channels = self._channels.delta(complete.offsets)
        except KeyError as unknown:
            self._abort(f"a writer reported rows of channel {unknown.args[0]!r}, which nobody has opened")
            return
        files = complete.files
        if not self._retry.why:
            self._size.flushed(complete.plan.intake, complete.most_taken, self._now - complete.barrier_at)
        if not files:
            self._drop(complete)
        if complete.writes:
            complete.phase = Phase.SENT
            self._out.append(Commit(complete.generation, complete.number, files, complete.channels))
        else:
            self._won(complete)
            self._publish_empty()

    def _give_up_what_is_late(self) -> None:
        deadline, flushing = self._round_deadline(), self._rounds.flushing
        if deadline is not None and flushing is not None and deadline <= self._now:
            nothing = f"nothing of round {flushing.number} went on for {self._policy.checkpoint_timeout:g} s"
            self._abort(f"{nothing}; missing: {', '.join(flushing.missing())}")
        for process, channel in self._channels.overdue(self._now).items():
            if self._members.evict(process):
                self._out.append(Evict(process, f"it did not let channel {channel!r} go within {self._policy.writer_timeout} s"))

    def _end_round(self) -> None:
        """The border: barriers to the round's members, the next round's plan to those who are new (rules RO3, RO7)."""
        before = [*self._rounds.behind, self._rounds.filling]
        following = self._plan(self._rounds.filling.number + 1, self._eligible(), before)
        staying = dict(following.members)
        for process in self._rounds.filling.members:
            if process not in staying:  # its clients go before the barrier, so that none of their rows comes behind it
                self._out += self._channels.end_all(process, HANDING_OVER if self._draining else MOVED, self._standing())
        for process, order in self._intake.stops(sorted(self._members.adopted)):
            self._tell(process, order)
        ended = self._rounds.end(following, self._now)
        self._tell_all(ended, Barrier(ended.number, following))
        self._adopt(process for process in staying if process not in ended.members)
        self._begin_waiting(recovering=False)
        self._begin_taking()

    def _abort(self, why: str) -> None:
        """Everything that is not sent is given up, in a new generation (rule RO2)."""
        self._aborts.given_up(why, self._now)
        self._out.append(Alarm(f"generation {self.generation} was given up: {why}"))
        self._out.append(AskLog())  # writers that obey another owner look like writers that fail
        self._size.restart()
        plan = self._plan(1, self._eligible(), [each for each in self._rounds.behind if each.phase is not Phase.FLUSHING])
        for given_up in self._rounds.abort(plan):
            self._drop(given_up)
        self._channels.rewind()
        self._members.rewind()
        told = [process for process in self._members.all if process in self._members.adopted or process in dict(plan.members)]
        self._members.adopted.clear()
        self._adopt(told)
        self._begin_waiting(recovering=True)
        self._begin_taking()

    def _end(self, refusal: Refusal) -> None:
        """Nobody takes rows any more, and all that is not sent is given up (rule CH8); a sent slot is decided first (rule RO2).

        Writers are released under the generation that they know, so that their clients hear why.
        """
        self._draining = True
        for process in self._members.all:
            self._tell(process, Release(refusal))
            self._members.remove(process)
        for given_up in self._rounds.abort(self._planner.plan(1, [])):
            self._drop(given_up)
        self._channels.rewind()
        self._members.adopted.clear()
        self._begin_waiting(recovering=False)

    def _begin_waiting(self, *, recovering: bool) -> None:
        """For the next reason to end a round; ``recovering``: no round of the generation has had a barrier."""
        self._asked, self._dirty_since, self._since, self._recovering = False, None, self._now, recovering
        self._intake.paused = False

    def _plan(self, number: int, members: Sequence[tuple[str, str]], before: Sequence[Round]) -> Plan:
        """Of a round that is to begin; ``before``: all whose rows may still become files."""
        return replace(self._planner.plan(number, members), share=self._intake.begin(before), intake=self._size.limit)

    def _begin_taking(self) -> None:
        """The filling round is new: rows come into it, or none as long as slices are full."""
        self._rounds.filling.takes_rows = self._intake.is_open
        self._rounds.filling.begun_counted = self._intake.ladder.is_counted
        self._tell_pace()

    def _count(self, event: OfSlices) -> None:
        match event:
            case SliceFigures():
                self._intake.counted(event)
            case CompactorsCounted(count):
                self._intake.ladder.compactors = count
            case _:
                assert_never(event)
        self._intake.look(self._rounds.filling, self._rounds.behind)
        self._tell_pace()

    def _tell_pace(self) -> None:
        for process, order in self._intake.changes(sorted(self._members.adopted), self._rounds.filling.members):
            self._tell(process, order)

    def _drop(self, each: Round) -> None:
        if each.instant_asked:
            self._out.append(DropRound(each.generation, each.number))

    def _release(self) -> None:
        """Writers that leave are free when their last round is over; the table is when all are."""
        busy = self._rounds.busy
        for process in self._members.all if self._draining else self._members.leaving:
            if process not in busy and not self._channels.holds_of(process):
                self._tell(process, Release())
                self._members.remove(process)
        done = self._rounds.over and not (self._members.all or self._channels.in_slot)
        if self._draining and done and not self._drained:
            self._drained = True
            self._out.append(Drained())

    # What is so.

    def _eligible(self) -> list[tuple[str, str]]:
        return [] if self._draining else self._members.staying

    def _standing(self) -> Standing:
        taking = dict(self._eligible()).keys() & self._rounds.filling.members.keys()
        rounds = self._rounds
        return Standing(
            generation=rounds.generation,
            now=self._now,
            writer_timeout=self._policy.writer_timeout,
            taking=taking,
            decided=rounds.decided,
            blocked=rounds.blocked or self._aborts.opens_at is not None,
            draining=self._draining,
        )

    def _look_at_opens(self) -> None:
        self._out += self._channels.look_again(self._standing())

    def _may_end(self) -> bool:
        """Only when the older round is decided (rule RO1), and its files have room."""
        rounds = self._rounds
        return rounds.older is None and bool(rounds.filling.members) and self._intake.ladder.fits(rounds.filling)

    def _due(self) -> float | None:
        filling = self._rounds.filling
        moving = dict(self._eligible()).keys() != filling.members.keys()
        at_once = moving or self._draining or self._channels.wanted >= filling.number
        fullest = max(self._members.uncommitted(self._rounds.flushing), default=0)
        stretch = self._intake.pressure.stretch
        return self._policy.due(Wish(at_once, self._asked, self._dirty_since, fullest, self._since, self._recovering, stretch))

    def _note_dirt(self) -> None:
        """Rows at a bucket side count too: no accepted row is left without a round, whatever was heard of loads."""
        dirty = self._rounds.filling.instant_wanted or any(self._members.uncommitted(self._rounds.flushing))
        if not dirty:
            self._dirty_since = None
        elif self._dirty_since is None:
            self._dirty_since = self._now

    def _round_deadline(self) -> float | None:
        flushing = self._rounds.flushing
        if flushing is None or not flushing.waits_for_writers:
            return None
        return flushing.moved_at + self._policy.checkpoint_timeout

    def _adopt(self, processes: Iterable[str]) -> None:
        for process in processes:
            self._members.adopted.add(process)
            self._intake.adopted(process)
            self._tell(process, Adopt(self._rounds.filling.plan))

    def _tell_all(self, each: Round, order: Order) -> None:
        if each.generation == self.generation:
            for process in each.members:
                self._tell(process, order)

    def _tell(self, process: str, order: Order) -> None:
        if process in self._members:
            self._out.append(Send(process, self.generation, order))
