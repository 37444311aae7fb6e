"""The owner's registry of channels: which producer may send rows of a channel, and when the next one may (rules CH3, CH4, CH5).

Records come from slots. Everything else is in memory, belongs to one generation and begins empty (rule CH3).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, replace

from headgate_coordinator.core.channel_counts import ChannelCounts
from headgate_coordinator.core.channel_retention import ChannelRetention
from headgate_coordinator.core.events import ChannelEnded, OpenRequested
from headgate_coordinator.core.instructions import EndChannel, Grant, Instruction, OpenRefused, Refusal, Send, WinOffsets
from headgate_coordinator.core.live_channels import Hold, LiveChannel, OpenConditions, Record
from headgate_coordinator.core.refusals import (
    FORBIDDEN,
    HANDED_OVER,
    MOVED,
    NEVER_ISSUED,
    NOT_RECORDED,
    OPENED_AGAIN,
    TAKEN_OVER,
    USED_UP,
)

MAX_INCARNATION = 2**63 - 1
"""Fits what travels and what slots hold. Opens alone do not come so far; a false incarnation in a slot of older code may have."""


class ChannelRegistry:
    """Answers opens of one channel in their order; channels do not wait for each other. ``retention``: seconds after which
    an idle channel is forgotten; inf: never. ``now``: monotonic seconds.
    """

    def __init__(self, records: Mapping[str, Sequence[int | str]], retention: float, now: float) -> None:
        self._records = {name: Record(int(each[0]), int(each[1]), str(each[2])) for name, each in records.items()}
        self._counts = ChannelCounts(record.principal for record in self._records.values())
        self._retention = ChannelRetention(self._records, retention, now)
        self._live: dict[str, LiveChannel] = {}
        self._restless: dict[str, None] = {}
        self._ending: dict[str, Hold] = {}
        self._raises: dict[str, OpenRequested] = {}
        self._in_slot: dict[str, OpenRequested] = {}
        self._forgetting: dict[str, None] = {}
        self._slots = 0
        self._holds = 0
        self._wanted = 0

    @property
    def hold_count(self) -> int:
        """Number of channels that a writer holds."""
        return sum(live.hold is not None for live in self._live.values())

    def has_holds_of(self, process: str) -> bool:
        """Whether this writer holds any channel."""
        return any(live.hold is not None and live.hold.process == process for live in self._live.values())

    @property
    def awaited_checkpoint(self) -> int:
        """The checkpoint for whose decision an open waits; 0: none waits."""
        return self._wanted

    @property
    def waits_for_slot(self) -> bool:
        """Whether a WinOffsets is not answered yet."""
        return bool(self._in_slot or self._forgetting)

    @property
    def look_at(self) -> float | None:
        """When ``forget_idle`` is due; None: never."""
        return self._retention.look_at

    def request_open(self, event: OpenRequested, standing: OpenConditions) -> Iterator[Instruction]:
        """A client opens the channel at a writer."""
        live = self._live.setdefault(event.channel, LiveChannel())
        self._retention.note_open(event.channel)
        if all((waiting.process, waiting.request) != (event.process, event.request) for waiting in live.opens):
            live.opens.append(event)
        yield from self._look(event.channel, standing)
        yield from self._win()

    def end_hold(self, event: ChannelEnded, last_checkpoint: int, standing: OpenConditions) -> Iterator[Instruction]:
        """A writer returned its hold. ``last_checkpoint``: the youngest checkpoint that can have rows which this writer took."""
        live = self._live.get(event.channel)
        if live is None or live.hold is None or (live.hold.number, live.hold.process) != (event.hold, event.process):
            return
        live.hold = None
        self._ending.pop(event.channel, None)
        if event.uncommitted:
            live.drain = last_checkpoint
        yield from self._look(event.channel, standing)
        yield from self._win()

    def answer_opens(self, standing: OpenConditions) -> Iterator[Instruction]:
        """Answers waiting opens after a checkpoint was decided, or when a writer may no longer take channels."""
        for name in list(self._restless):
            yield from self._look(name, standing)
        yield from self._win()

    def end_holds_of(self, process: str, refusal: Refusal, standing: OpenConditions) -> Iterator[Instruction]:
        """Ends every hold of a writer that is not a member of the next checkpoint."""
        for name, live in self._live.items():
            if live.hold is not None and live.hold.process == process and live.hold.ends_by is None:
                yield self._end(name, live.hold, refusal, standing)

    def forget_idle(self, standing: OpenConditions) -> Iterator[Instruction]:
        """Forgets channels that have been idle for the retention (rule CH5). Until the slot is won they count, and opens wait.

        A look that finds a slot under way, or committed offsets that are not final, leaves them to the next one.
        """
        idle = self._retention.find_idle([name for name in self._records if name not in self._live], standing.now)
        if idle and not (standing.blocked or self.waits_for_slot):
            self._forgetting = dict.fromkeys(idle)
            self._slots += 1
            yield WinOffsets(self._slots, {}, idle)

    def offsets_won(self, number: int, standing: OpenConditions) -> Iterator[Instruction]:
        """The new incarnations are durable: from now on, not before, their producers may learn them (rule CH4). Or
        idle channels are forgotten.

        The slot also proves that nobody else has issued incarnations since: what is above the newest one was never issued.
        """
        opened, forgotten = self._answered(number)
        for name in forgotten:
            self._counts.remove(self._records.pop(name).principal)
            yield from self._look(name, standing)
        for name, request in opened.items():
            if request.incarnation == 0 and name not in self._records:
                self._counts.add(request.principal)
            if request.incarnation == 0:
                self._records[name] = self._raised(name, request)
            live = self._live.get(name)
            if live is not None and live.opens and live.opens[0] is request:
                live.opens.popleft()
                refusal = NEVER_ISSUED if request.incarnation else self._unwelcome(request, standing)
                yield _refuse(request, refusal, standing) if refusal else self._grant(request, live, standing)
            yield from self._look(name, standing)
        yield from self._win()

    def offsets_refused(self, number: int, standing: OpenConditions) -> Iterator[Instruction]:
        """Nothing was decided: producers that wait may try again."""
        opened, forgotten = self._answered(number)
        for name in forgotten:
            yield from self._look(name, standing)
        for name, request in opened.items():
            live = self._live.get(name)
            if live is not None and live.opens and live.opens[0] is request:
                live.opens.popleft()
                yield _refuse(request, NOT_RECORDED, standing)
            yield from self._look(name, standing)
        yield from self._win()

    def foreign_offsets(self, process: str, offsets: Mapping[str, int]) -> list[str]:
        """Returns channels of which the writer reports an offset now that would grow, without having them (rule RO10).

        A channel whose hold has ended goes to nobody else before the checkpoint that is reported is decided (rule CH3).
        """
        takers = {name: live.taker for name, live in self._live.items() if name in offsets}
        return [name for name, offset in offsets.items() if self._grows(name, offset) and takers.get(name) != process]

    def grown_records(self, offsets: Mapping[str, int]) -> dict[str, tuple[int, int, str]]:
        """Returns the records of a COMMIT slot: channels whose committed offset grows. None of ``offsets`` is foreign; one
        that was reported as it was committed may have been forgotten since.
        """
        known = {name: (self._records[name], offset) for name, offset in offsets.items() if name in self._records}
        return {name: (old.incarnation, offset, old.principal) for name, (old, offset) in known.items() if offset > old.committed}

    def _grows(self, name: str, offset: int) -> bool:
        return name not in self._records or offset > self._records[name].committed

    def note_committed(self, delta: Mapping[str, tuple[int, int, str]]) -> None:
        """Takes over the records of a slot that was won."""
        self._records.update({name: Record(*record) for name, record in delta.items()})

    def drop_opens_and_holds(self) -> None:
        """Drops all holds and opens for a new generation (rules RO2, CH3). A slot under way is still answered."""
        for gone in (self._live, self._restless, self._ending, self._raises):
            gone.clear()
        self._wanted = 0

    @property
    def hold_deadline(self) -> float | None:
        """When the next hold has to be returned."""
        return next((hold.ends_by for hold in self._ending.values()), None)

    def overdue_writers(self, now: float) -> dict[str, str]:
        """Writers that did not return a hold in time, each with one such channel. Each hold is reported once."""
        late = {name: hold for name, hold in self._ending.items() if hold.ends_by is not None and hold.ends_by <= now}
        for name in late:
            del self._ending[name]
        return {hold.process: name for name, hold in late.items()}

    def _look(self, name: str, standing: OpenConditions) -> Iterator[Instruction]:
        """Answers opens at the head of the channel's queue, and notes what the rest waits for."""
        live = self._live.get(name)
        if live is None:
            return
        while live.opens and not any(name in waiting for waiting in (self._in_slot, self._raises, self._forgetting)):
            request = live.opens[0]
            refusal = self._refusal(request, standing)
            if refusal is not None:
                live.opens.popleft()
                yield _refuse(request, refusal, standing)
            elif live.hold is not None:
                if live.hold.ends_by is None:
                    # Not TAKEN_OVER yet, even for a new producer: that is final, and true only once a slot records it (rule CH4).
                    yield self._end(name, live.hold, OPENED_AGAIN, standing)
                break
            elif standing.blocked or live.drain > standing.decided:
                # Also before the incarnation's slot: its record holds the committed offset, which must be final (CH3).
                self._wanted = max(self._wanted, live.drain)
                break
            elif self._is_news(request):
                self._raises[name] = request
            else:
                live.opens.popleft()
                yield self._grant(request, live, standing)
        self._rest(name, live, standing)

    def _rest(self, name: str, live: LiveChannel, standing: OpenConditions) -> None:
        if live.hold is None and not live.opens and live.drain <= standing.decided:
            del self._live[name]
        if name in self._live and (live.opens or live.hold is None):
            self._restless[name] = None
        else:
            self._restless.pop(name, None)

    def _unwelcome(self, request: OpenRequested, standing: OpenConditions) -> Refusal | None:
        if standing.draining:
            return HANDED_OVER
        return None if request.process in standing.taking else MOVED

    def _refusal(self, request: OpenRequested, standing: OpenConditions) -> Refusal | None:
        record = self._records.get(request.channel)
        if (unwelcome := self._unwelcome(request, standing)) is not None:
            return unwelcome
        if record is not None and record.principal != request.principal:
            return FORBIDDEN
        if record is not None and 0 < request.incarnation < record.incarnation:
            return TAKEN_OVER
        if record is not None and request.incarnation == 0 and record.incarnation >= MAX_INCARNATION:
            return USED_UP
        return self._counts.refusal(request, (self._raises, self._in_slot), self._records) if record is None else None

    def _is_news(self, request: OpenRequested) -> bool:
        """A new producer, or an incarnation that our slots do not have: a newer owner's if we are an outdated one, else a
        false one. The slot tells: an outdated owner never wins it, where a refusal would stop the right producer for good.
        """
        record = self._records.get(request.channel)
        return request.incarnation == 0 or record is None or request.incarnation > record.incarnation

    def _end(self, name: str, hold: Hold, refusal: Refusal, standing: OpenConditions) -> Instruction:
        hold.ends_by = standing.now + standing.writer_timeout
        self._ending[name] = hold
        return Send(hold.process, standing.generation, EndChannel(name, hold.number, refusal))

    def _grant(self, request: OpenRequested, live: LiveChannel, standing: OpenConditions) -> Instruction:
        self._holds += 1
        live.hold = Hold(self._holds, request.process)
        live.taker = request.process
        live.drain = 0
        record = self._records[request.channel]
        order = Grant(request.request, request.channel, record.incarnation, record.committed, self._holds)
        return Send(request.process, standing.generation, order)

    def _win(self) -> Iterator[Instruction]:
        """Opens that wait at the same time share one slot (rule CH4)."""
        if self._raises and not self.waits_for_slot:
            self._in_slot, self._raises = self._raises, {}
            self._slots += 1
            new = {name: request for name, request in self._in_slot.items() if request.incarnation == 0}
            yield WinOffsets(self._slots, {name: astuple(self._raised(name, request)) for name, request in new.items()})

    def _raised(self, name: str, request: OpenRequested) -> Record:
        record = self._records.get(name, Record(0, 0, request.principal))
        return replace(record, incarnation=record.incarnation + 1)

    def _answered(self, number: int) -> tuple[dict[str, OpenRequested], dict[str, None]]:
        """Opens of which that slot is the answer, and channels that it forgets."""
        if number != self._slots:
            return {}, {}
        answered = self._in_slot, self._forgetting
        self._in_slot, self._forgetting = {}, {}
        return answered


def _refuse(request: OpenRequested, refusal: Refusal, standing: OpenConditions) -> Instruction:
    return Send(request.process, standing.generation, OpenRefused(request.request, refusal))
