"""A writer as the simulation has it: the owner's orders, clients, and the ingest side with its one FIFO."""

from collections import deque
from collections.abc import Set
from dataclasses import dataclass

from headgate_coordinator.core import events, instructions
from headgate_coordinator.core.events import Event
from headgate_coordinator.core.instructions import Membership, Order
from headgate_coordinator.core.tally import Tally
from support.coordinator_sim.bucket_side import ROW_BYTES, BucketSide, Exchange, Frame, Tag, tallied
from support.coordinator_sim.owner import Link
from support.coordinator_sim.producer import Connection, Producer
from support.coordinator_sim.slots import Row, SlotLog, ViolationError


@dataclass(slots=True)
class HeldChannel:
    """A hold at its writer."""

    number: int
    connection: Connection
    accepted: int
    durable: int


@dataclass(slots=True)
class Batch:
    """Accepted rows in the FIFO."""

    channel: str
    rows: tuple[Row, ...]


class Writer:
    """``broken``: names of rules that it does not keep."""

    def __init__(
        self,
        process: str,
        address: str,
        log: SlotLog,
        exchanges: dict[tuple[Tag, str, str], Exchange],
        broken: Set[str],
        key_groups: int,
        *,
        slow_flushes: bool = False,
    ) -> None:
        self._slow_flushes = slow_flushes
        self._key_groups = key_groups
        self._lies = ""
        self.silent = self.failing = self._failed = False
        self.process = process
        self.address = address
        self.tag: Tag = (0, 0)
        self.links: dict[int, Link] = {}
        self.leaving = False
        self.released = False
        self.connections: list[Connection] = []
        self._log = log
        self._exchanges = exchanges
        self._broken = broken
        self._requests = 0
        self._rewind()

    def _rewind(self) -> None:
        """All uncommitted rows are dropped, all channels end (rule RO2)."""
        self.membership: Membership | None = None
        self.fifo: deque[Batch | instructions.Barrier] = deque()
        for held in getattr(self, "holds", {}).values():
            held.connection.end("rewound")
        for producer in getattr(self, "requests", {}).values():
            producer.refused("rewound")
        self.holds: dict[str, HeldChannel] = {}
        self._held: set[str] = set()
        self.requests: dict[int, Producer] = {}
        self.side = BucketSide(self.process, self._broken, self._key_groups, slow=self._slow_flushes, lies=self._lies)
        self.stopped = False
        self._window = self._in_window = 0
        self._grown: dict[str, int] = {}
        self._handed: dict[str, Tally] = {}
        self._noted: dict[int, dict[str, int]] = {}
        self._taken: dict[int, int] = {}
        self._queued = 0

    def die(self) -> None:
        """Its clients notice."""
        self._rewind()

    def forget(self) -> None:
        """Its control stream is gone: what was uncommitted is dropped, and only an Attach makes it a member again."""
        self._rewind()

    def begin_lying(self, lie: str) -> None:
        """From now on; see ``lying.LIES``."""
        self._lies = self.side.lies = lie

    def hurry(self) -> None:
        """From now on a flush takes one step."""
        self._slow_flushes = self.side.slow = False

    @property
    def uncommitted(self) -> int:
        """Bytes taken from clients that are not committed yet."""
        return self._queued + sum(self._taken.values())

    def report(self, event: Event) -> None:
        """To the owner whose generation this is."""
        link = self.links.get(self.tag[0])
        if link is not None:
            link.report(event)

    # from the owner

    def obey(self, link: Link, generation: int, order: Order) -> None:
        """One order; of an older (epoch, generation) only if that rule is broken."""
        tag = (link.owner.epoch, generation)
        if tag[0] < self.tag[0] and not isinstance(order, instructions.Detach):
            self._tell_of_newer(link)
        if isinstance(order, instructions.Attach):
            if tag > self.tag:
                before = self.links.get(self.tag[0])
                if before is not None and before is not link:
                    self._tell_of_newer(before, tag[0])
                self._rewind()
                self.tag, self._failed = tag, False
            # One that was excluded, and has a part again, is attached a second time.
            if tag == self.tag and not self._failed and (self.membership is None or not self._has_part(self.membership)):
                self.membership = self.side.memberships[order.membership.checkpoint] = order.membership
                self._window = order.membership.intake_bytes
        elif isinstance(order, instructions.Detach) and tag >= self.tag:
            self._rewind()
            self.released = self.leaving
        elif (tag == self.tag and not self._failed) or "old orders" in self._broken:
            self._obey(order)

    def _has_part(self, membership: Membership) -> bool:
        return self.process in dict(membership.members)

    def _tell_of_newer(self, link: Link, newest: int = 0) -> None:
        if "newer owners" not in self._broken:
            link.report(events.NewerOwnerSeen(self.process, newest or self.tag[0]))

    def _obey(self, order: Order) -> None:
        if isinstance(order, instructions.Barrier):
            self.fifo.append(order)
            self.side.memberships[order.next.checkpoint] = order.next
            self._window, self._in_window = order.next.intake_bytes, 0
        elif isinstance(order, instructions.Throttle):
            self.stopped = order.stopped is not None
        elif isinstance(order, instructions.UseInstant):
            self.side.instant(order.checkpoint, order.instant)
        elif isinstance(order, instructions.Decided):
            self._decided(order)
        elif isinstance(order, instructions.Grant):
            self._granted(order)
        elif isinstance(order, instructions.OpenRefused):
            producer = self.requests.pop(order.request, None)
            if producer is not None:
                self._check_fenced(producer, order.refusal.code)
                producer.refused(order.refusal.code)
        elif isinstance(order, instructions.EndChannel):
            held = self.holds.get(order.channel)
            if held is not None and held.number == order.hold:
                if held.connection.producer is not None:
                    self._check_fenced(held.connection.producer, order.refusal.code)
                self.let_go(order.channel, order.refusal.code)

    def _check_fenced(self, producer: Producer, code: str) -> None:
        if code == "CODE_CHANNEL_TAKEN_OVER" and self._log.incarnation(producer.channel) <= producer.incarnation:
            raise ViolationError(f"the newest producer of {producer.channel} is told that it is taken over (rule CH4)")

    def _decided(self, order: instructions.Decided) -> None:
        for name, offset in self._noted.pop(order.checkpoint, {}).items():
            if offset > self._log.offset(name):
                raise ViolationError(f"{name} is acknowledged up to {offset} and committed up to {self._log.offset(name)}")
            if name in self.holds:
                self.holds[name].durable = max(offset, self.holds[name].durable)
        self._taken.pop(order.checkpoint, None)

    def _granted(self, order: instructions.Grant) -> None:
        if order.incarnation > self._log.incarnation(order.channel):
            raise ViolationError(f"{order} is told before it is durable (rule CH4)")
        producer = self.requests.pop(order.request, None)
        connection = Connection(order.channel, order.hold)
        self.connections.append(connection)
        if order.channel in self.holds:
            if not self._broken:
                raise ViolationError(f"{order} while hold {self.holds[order.channel].number} is there (rule CH3)")
            self.holds[order.channel].connection.end("rewound")
        self._held.add(order.channel)
        self.holds[order.channel] = HeldChannel(order.hold, connection, order.committed_offset, order.committed_offset)
        if producer is None or not producer.granted(connection, order.incarnation, order.committed_offset):
            self.let_go(order.channel, "gone")

    # from clients

    def open(self, producer: Producer, principal: str) -> bool:
        """Whether the open was sent to the owner."""
        takes_rows = self.membership is not None and self.process in dict(self.membership.members)
        if not takes_rows or self.leaving or self.tag[0] not in self.links:
            return False
        self._requests += 1
        self.requests[self._requests] = producer
        self.report(
            events.OpenRequested(self.process, self.tag[1], self._requests, producer.channel, producer.incarnation, principal)
        )
        return True

    def take(self, connection: Connection) -> None:
        """The next batch of a connection, or its end."""
        held = self.holds.get(connection.channel)
        mine = held is not None and (held.connection is connection or "late batches" in self._broken)
        if connection.batches and self.stopped and held is not None and "stops" not in self._broken:
            return  # refused; its client sends it again
        if connection.batches and self._window and self._in_window >= self._window:
            return  # not read before the next checkpoint
        if connection.batches:
            after, rows = connection.batches.popleft()
            if held is not None and mine and after == held.accepted:
                held.accepted = rows[-1].offset
                self.fifo.append(Batch(connection.channel, rows))
                self._queued += ROW_BYTES * len(rows)
                self._in_window += ROW_BYTES * len(rows)
                if self._window and self._in_window >= self._window:
                    self.report(events.CheckpointAsked(self.process, self.tag[1]))
        elif connection.client_gone and held is not None and held.connection is connection:
            self.let_go(connection.channel, "gone")

    def let_go(self, channel: str, why: str) -> None:
        """What was accepted stays (rule CH3)."""
        held = self.holds.pop(channel)
        held.connection.end(why)
        self.report(events.ChannelEnded(self.process, self.tag[1], channel, held.number, held.accepted > held.durable))

    # its own work

    def ingest(self) -> None:
        """One entry of the FIFO."""
        if not self.fifo or (self.silent and isinstance(self.fifo[0], instructions.Barrier)):
            return
        entry = self.fifo.popleft()
        if isinstance(entry, Batch):
            self._queued -= ROW_BYTES * len(entry.rows)
            if self.membership is not None and self.membership.members:
                self._route(entry, self.membership)
        elif self.membership is not None:
            self._pass_barrier(entry, self.membership)

    def _route(self, batch: Batch, membership: Membership) -> None:
        self._taken[membership.checkpoint] = self._taken.get(membership.checkpoint, 0) + ROW_BYTES * len(batch.rows)
        self._grown[batch.channel] = batch.rows[-1].offset
        parts: dict[str, list[Row]] = {}
        for row in batch.rows:
            member = membership.members[membership.assignment[row.key % self._key_groups]][0]
            parts.setdefault(member, []).append(row)
        for member, rows in parts.items():
            stream = self._stream(member)
            self._handed[member] = tallied(self._handed.get(member, Tally()), tuple(rows))
            if self._lies == "loses frames" and member != self.process:
                continue
            stream.sent += 1
            self._give(stream, Frame(membership.checkpoint, tuple(rows)))

    def _pass_barrier(self, barrier: instructions.Barrier, membership: Membership) -> None:
        for member, _ in membership.members:
            stream = self._stream(member)
            self._give(stream, Frame(membership.checkpoint, None, stream.sent))
            stream.sent = 0
        self._noted[membership.checkpoint], self._grown = self._grown, {}
        size = self._taken.get(membership.checkpoint, 0)
        self.membership = barrier.next if self.process in dict(barrier.next.members) else None
        offsets, handed = dict(self._noted[membership.checkpoint]), self._handed
        if self._lies == "takes offsets":
            own = self._held | {producer.channel for producer in self.requests.values()}
            offsets |= {name: self._log.offset(name) + 1 for name in self._log.channels if name not in own}
        self._handed = {}
        self.report(events.BarrierPassed(self.process, self.tag[1], barrier.checkpoint, offsets, size, handed))

    def _stream(self, receiver: str) -> Exchange:
        name = (self.tag, self.process, receiver)
        return self._exchanges.setdefault(name, Exchange(*name))

    def _give(self, stream: Exchange, frame: Frame) -> None:
        if stream.receiver == self.process:
            self.side.take(self.process, frame)
        else:
            stream.frames.append(frame)

    def receive(self, stream: Exchange) -> None:
        """The next frame, if it may be taken now (rules RO2, EX5)."""
        if not stream.frames:
            return
        if stream.tag > self.tag and "early frames" not in self._broken:
            return
        frame = stream.frames.popleft()
        if stream.tag == self.tag or "tags" in self._broken:
            self.side.take(stream.sender, frame)

    def flush(self, *, early: bool = False) -> None:
        """The bucket side's next step. One that is ``failing`` drops the table where it would write files (rule RO12)."""
        said = list(self.side.step(self.tag[1], early=early))
        if self.failing and self.side.has_files:
            self._rewind()
            self._failed = True
            said = [events.Broken(self.process, self.tag[1], "a flush failed", own=True)]
        for event in said:
            self.report(event)
