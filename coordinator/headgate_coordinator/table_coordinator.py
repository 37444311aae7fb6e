"""One table's owner as a pure state machine: events in, instructions out.

It mirrors Hudi's StreamWriteOperatorCoordinator, with two rounds at a time: one fills, one flushes (rule RO1).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headgate_coordinator.assignment import MeasuredLoad, assign
from headgate_coordinator.channels import CLOSING, MOVED, Channels, Standing
from headgate_coordinator.events import (
    BarrierPassed,
    Broken,
    ChannelEnded,
    CommitRefused,
    DrainAsked,
    Event,
    Flushed,
    InstantAsked,
    InstantIssued,
    LoadReported,
    OffsetsRefused,
    OffsetsWon,
    OpenRequested,
    Published,
    RoundAsked,
    SlotWon,
    Tick,
    WriterJoined,
    WriterLeaving,
    WriterLost,
)
from headgate_coordinator.instructions import (
    Adopt,
    Alarm,
    Barrier,
    Commit,
    Decided,
    Drained,
    DropRound,
    Evict,
    Instant,
    Instruction,
    IssueInstant,
    Order,
    Plan,
    Release,
    Send,
)
from headgate_coordinator.members import Members
from headgate_coordinator.policy import RoundPolicy, Wish
from headgate_coordinator.rounds import Phase, Round


class TableCoordinator:
    """Made anew for each ownership: ``channels`` is what the slots say, name to [incarnation, committed offset, principal, …].

    Times are monotonic seconds. Instructions are to be executed in order; those for the committer one after the other. After a
    deposition or an unknown outcome it is thrown away.
    """

    def __init__(
        self, epoch: int, channels: Mapping[str, Sequence[Any]], policy: RoundPolicy, key_groups: int, now: float
    ) -> None:
        self.epoch = epoch
        self.last_round_seconds = 0.0
        self.last_round_files = 0
        self.last_round_bytes = 0
        self._policy = policy
        self._key_groups = key_groups
        self._now = now
        self._generation = 1
        self._members = Members()
        self._channels = Channels(channels)
        self._load = MeasuredLoad(key_groups)
        self._filling = Round(1, Plan(1, (), ()))
        self._older: Round | None = None
        self._unpublished: list[Round] = []
        self._asked = False
        self._dirty_since: float | None = None
        self._since = now
        self._failures: int | None = 0
        self._aborts: list[str] = []
        self._draining = False
        self._drained = False
        self._out: list[Instruction] = []

    # what `status` shows

    @property
    def generation(self) -> int:
        """Spans without an abort, counted from 1."""
        return self._generation

    @property
    def round(self) -> int:
        """The round that fills, from 1 in each generation."""
        return self._filling.number

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
        alarms = [] if self._filling.members or self._draining else ["no writer takes part in the table"]
        if self._aborts:
            alarms.append(f"{len(self._aborts)} rounds in a row were given up, the last one because {self._aborts[-1]}")
        return alarms

    # what happens

    def handle(self, event: Event, now: float) -> list[Instruction]:
        """One event; ``now`` never goes back. Returns what is to be done, in order."""
        self._now = max(now, self._now)
        self._out = []
        if isinstance(event, WriterJoined | WriterLost | WriterLeaving | LoadReported):
            self._of_writer(event)
        elif isinstance(event, InstantIssued | SlotWon | Published | CommitRefused):
            self._of_slot(event)
        elif isinstance(event, OffsetsWon):
            self._out += self._channels.offsets_won(event.number, self._standing())
        elif isinstance(event, OffsetsRefused):
            self._out += [Alarm(f"channel records were refused: {event.why}")]
            self._out += self._channels.offsets_refused(event.number, self._standing())
        elif isinstance(event, DrainAsked):
            self._draining = True
            self._look_at_opens()
        elif not isinstance(event, Tick):
            self._of_generation(event)
        self._advance()
        return self._out

    def deadline(self) -> float | None:
        """When a Tick is due, if nothing else happens before."""
        times = [self._channels.deadline, self._round_deadline(), self._due() if self._may_end() else None]
        return min((time for time in times if time is not None), default=None)

    def _of_writer(self, event: WriterJoined | WriterLost | WriterLeaving | LoadReported) -> None:
        if isinstance(event, WriterJoined):
            self._joined(event)
        elif isinstance(event, WriterLost):
            if event.process in self._members:
                self._lost(event.process, f"writer {event.process} was lost: {event.why}")
        elif isinstance(event, WriterLeaving):
            self._members.leave(event.process)
            self._look_at_opens()
        else:
            self._members.report(event.process, event.uncommitted_bytes)

    def _joined(self, event: WriterJoined) -> None:
        if event.process in self._members or event.process in self._members.adopted:
            self._lost(event.process, f"writer {event.process} came back")
        for other in self._members.join(event.process, event.address):
            self._out.append(Evict(other, f"process {event.process} has its address {event.address}"))

    def _lost(self, process: str, why: str) -> None:
        self._members.remove(process)
        if process in self._members.adopted:  # rule RO8
            self._abort(why)

    def _of_generation(
        self, event: InstantAsked | RoundAsked | BarrierPassed | Flushed | Broken | OpenRequested | ChannelEnded
    ) -> None:
        """From a writer, under a generation: one of another is refused (rule RO2)."""
        if event.generation != self._generation or event.process not in self._members:
            return
        if isinstance(event, OpenRequested):
            self._out += self._channels.open(event, self._standing())
        elif isinstance(event, ChannelEnded):
            self._out += self._channels.ended(event, self._last_round_of(event.process), self._standing())
        elif isinstance(event, RoundAsked):
            self._asked = True
        elif isinstance(event, InstantAsked):
            self._instant_asked(event.round)
        elif isinstance(event, Broken):
            self._abort(f"writer {event.process} could not go on: {event.why}")
        elif (flushing := self._flushing()) is not None and flushing.number == event.round:
            if isinstance(event, BarrierPassed):
                flushing.passed(event)
            else:
                flushing.flushed(event)

    def _last_round_of(self, process: str) -> int:
        """The youngest round that can have rows taken by this writer: it need not have seen the last barrier yet."""
        return self._filling.number if process in self._filling.members else self._filling.number - 1

    def _instant_asked(self, number: int) -> None:
        """Instants are issued in round order: an older round that has none gets its own first (rules TM5, RO2)."""
        for each in (self._flushing(), self._filling):
            if each is not None and each.number <= number and not each.instant_asked:
                each.instant_asked = True
                self._out.append(IssueInstant(each.generation, each.number))

    # what the committer says

    def _of_slot(self, event: InstantIssued | SlotWon | Published | CommitRefused) -> None:
        for each in (self._older, self._filling, *self._unpublished):
            if each is not None and (each.generation, each.number) == (event.generation, event.round):
                if isinstance(event, InstantIssued):
                    each.instant_issued = True
                    self._tell_all(each, Instant(event.round, event.instant))
                elif isinstance(event, SlotWon):
                    self._won(each)
                elif isinstance(event, Published):
                    self._published(each)
                else:
                    self._refused(each, event.why)
                return

    def _won(self, won: Round) -> None:
        self._channels.committed(won.channels)
        self._decided(won)
        self._unpublished.append(won)
        self._tell_all(won, Decided(won.number, queryable=False))

    def _published(self, published: Round) -> None:
        self._unpublished.remove(published)
        self._tell_all(published, Decided(published.number, queryable=True))
        if published.files or published.channels:
            self.last_round_seconds = self._now - published.barrier_at
            self.last_round_files = len(published.files)
            self.last_round_bytes = published.bytes
        self._look_at_opens()

    def _decided(self, decided: Round) -> None:
        decided.phase = Phase.WON
        self._older = None
        self._aborts.clear()
        self._load.add(decided.key_group_bytes)
        if decided.generation == self._generation:
            self._members.settle(decided)

    def _refused(self, refused: Round, why: str) -> None:
        """For certain nothing was decided, so that the round can be given up like one that was never sent."""
        if refused.generation == self._generation:
            refused.phase = Phase.FLUSHING
            self._abort(f"the table's storage refused the round: {why}")
        elif refused is self._older:
            self._drop(refused)
            self._older = None
            self._look_at_opens()

    # what follows

    def _advance(self) -> None:
        flushing = self._flushing()
        if flushing is not None and flushing.complete:
            self._commit(flushing)
        deadline = self._round_deadline()
        if deadline is not None and self._older is not None and deadline <= self._now:
            self._abort(f"round {self._older.number} was not complete in time; missing: {', '.join(self._older.missing())}")
        for process, channel in self._channels.overdue(self._now).items():
            if self._members.evict(process):
                self._out.append(Evict(process, f"it did not let channel {channel!r} go within {self._policy.writer_timeout} s"))
        if not self._filling.members and self._eligible():
            self._filling = Round(self._generation, self._plan(self._filling.number))
            self._adopt(self._filling, self._filling.members)
        self._note_dirt()
        if self._may_end():
            due = self._due()
            if due is not None and due <= self._now:
                self._end_round()
        self._release()

    def _commit(self, complete: Round) -> None:
        """Rows and offsets go into one slot; offsets alone into one without an instant; nothing writes nothing (rule RO5)."""
        try:
            complete.channels = self._channels.delta(complete.offsets)
        except KeyError as unknown:
            self._abort(f"a writer reported rows of channel {unknown.args[0]!r}, which nobody has opened")
            return
        files = complete.files
        if not files:
            self._drop(complete)
        if files or complete.channels:
            complete.phase = Phase.SENT
            self._out.append(Commit(complete.generation, complete.number, files, complete.channels))
        else:
            self._won(complete)
            self._published(complete)

    def _end_round(self) -> None:
        """The border: barriers to the round's members, the next round's plan to those who are new (rules RO3, RO7)."""
        ended = self._filling
        following = Round(self._generation, self._plan(ended.number + 1))
        for process in ended.members:
            if process not in following.members:
                self._out += self._channels.end_all(process, CLOSING if self._draining else MOVED, self._standing())
        ended.end(self._now)
        self._older, self._filling = ended, following
        self._tell_all(ended, Barrier(ended.number, following.plan))
        self._adopt(following, [process for process in following.members if process not in ended.members])
        self._asked, self._dirty_since, self._since, self._failures = False, None, self._now, None

    def _abort(self, why: str) -> None:
        """Everything that is not sent is given up, in a new generation (rule RO2)."""
        self._aborts.append(why)
        self._out.append(Alarm(f"generation {self._generation} was given up: {why}"))
        for each in (self._flushing(), self._filling):
            if each is not None and each.phase is not Phase.SENT:
                self._drop(each)
        if self._older is not None and self._older.phase is not Phase.SENT:
            self._older = None
        self._generation += 1
        self._channels.rewind()
        self._members.rewind()
        plan = self._plan(1)
        told = [process for process in self._members.all if process in self._members.adopted or process in dict(plan.members)]
        self._filling = Round(self._generation, plan)
        self._members.adopted.clear()
        self._adopt(self._filling, told)
        self._asked, self._dirty_since, self._since, self._failures = False, None, self._now, len(self._aborts)

    def _drop(self, each: Round) -> None:
        if each.instant_asked:
            self._out.append(DropRound(each.generation, each.number))

    def _release(self) -> None:
        """Writers that leave are free when their last round is over; the table is when all are."""
        busy = {process for each in self._rounds() for process in each.members}
        for process in self._members.all if self._draining else self._members.leaving:
            if process not in busy and not self._channels.holds_of(process):
                self._tell(process, Release())
                self._members.remove(process)
        done = not (self._members.all or self._older or self._unpublished or self._channels.in_slot)
        if self._draining and done and not self._drained:
            self._drained = True
            self._out.append(Drained())

    # what is so

    def _flushing(self) -> Round | None:
        """The older round, if it belongs to this generation."""
        return self._older if self._older is not None and self._older.generation == self._generation else None

    def _rounds(self) -> list[Round]:
        rounds = [self._filling, *self._unpublished, *([self._older] if self._older else [])]
        return [each for each in rounds if each.generation == self._generation]

    def _eligible(self) -> list[tuple[str, str]]:
        return [] if self._draining else self._members.staying

    def _standing(self) -> Standing:
        undecided = [*self._unpublished, *([self._older] if self._older else [])]
        return Standing(
            self._generation,
            self._now,
            self._policy.writer_timeout,
            () if self._draining else self._filling.members.keys() - set(self._members.leaving),
            self._filling.number,
            min((each.number - 1 for each in undecided), default=self._filling.number - 1),
            bool(self._unpublished) or any(each.generation != self._generation for each in undecided),
            self._draining,
        )

    def _look_at_opens(self) -> None:
        self._out += self._channels.look_again(self._standing())

    def _may_end(self) -> bool:
        """Only when the older round is decided (rule RO1)."""
        return self._older is None and bool(self._filling.members)

    def _due(self) -> float | None:
        moving = dict(self._eligible()).keys() != self._filling.members.keys()
        awaited = self._channels.wanted >= self._filling.number
        fullest = max(self._members.uncommitted(self._flushing()), default=0)
        at_once = moving or awaited or self._draining
        return self._policy.due(Wish(at_once, self._asked, self._dirty_since, fullest, self._since, self._failures))

    def _note_dirt(self) -> None:
        """Rows at a bucket side count too: no accepted row is left without a round, whatever was heard of loads."""
        dirty = self._filling.instant_asked or any(self._members.uncommitted(self._flushing()))
        if not dirty:
            self._dirty_since = None
        elif self._dirty_since is None:
            self._dirty_since = self._now

    def _round_deadline(self) -> float | None:
        flushing = self._flushing()
        if flushing is None or flushing.phase is not Phase.FLUSHING:
            return None
        return flushing.barrier_at + self._policy.checkpoint_timeout

    def _plan(self, number: int) -> Plan:
        members = self._eligible()
        before = self._filling.plan
        had = [before.members[index][0] for index in before.assignment]
        processes = [process for process, _ in members]
        assigned = assign(had, processes, self._load.weights())
        index = {process: position for position, process in enumerate(processes)}
        return Plan(number, tuple(members), tuple(index[process] for process in assigned))

    def _adopt(self, following: Round, processes: Iterable[str]) -> None:
        for process in processes:
            self._members.adopted.add(process)
            self._tell(process, Adopt(following.plan))

    def _tell_all(self, each: Round, order: Order) -> None:
        if each.generation == self._generation:
            for process in each.members:
                self._tell(process, order)

    def _tell(self, process: str, order: Order) -> None:
        if process in self._members:
            self._out.append(Send(process, self._generation, order))
