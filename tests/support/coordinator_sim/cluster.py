"""A whole cluster around the real TableCoordinator, driven by one seed: random steps with faults, then fair steps without.

Every commit is checked as it lands (``SlotLog``); in the end everything has to be committed and the table has to fall idle.
"""

from collections.abc import Callable, Set
from random import Random

from headgate_coordinator import events
from headgate_coordinator.policy import RoundPolicy
from headgate_coordinator.table_coordinator import TableCoordinator
from support.coordinator_sim.owner import KEY_GROUPS, Link, Owner
from support.coordinator_sim.producer import Producer
from support.coordinator_sim.slots import Slot, SlotLog, StuckError, ViolationError
from support.coordinator_sim.writer import Exchange, Tag, Writer

FAIR_PASSES = 3000
IDLE_PASSES = 20


class Cluster:
    """``broken``: rules that writers do not keep. ``same_process``: a restarted writer keeps its process id (against RO8)."""

    def __init__(
        self, seed: int, make: type[TableCoordinator] = TableCoordinator, broken: Set[str] = frozenset(), *, same_process: bool = False
    ) -> None:
        self.random = Random(seed)
        self.log = SlotLog()
        self.now = 100.0
        self.aborts = 0
        self.faults: dict[str, int] = {}
        self._make = make
        self._broken = broken
        self._same_process = same_process
        self._puts: list[Slot] = []
        self._refusals = self.random.choice((0.0, 0.02))
        self._slow = self.random.choice((None, None, 0, 1))
        self._late_batches = self.random.random() < 0.3
        self._interval = self.random.choice((1.0, 10.0))
        self._forgets = self.random.random() < 0.5
        self._exchanges: dict[tuple[Tag, str, str], Exchange] = {}
        self._processes = 0
        self.links: list[Link] = []
        self.owners = [self._owner(1)]
        self.writers: dict[str, Writer] = {}
        for _ in range(self.random.randint(1, 3)):
            self._start_writer()
        self.rows = {name: self.random.randint(8, 30) for name in ("a", "b")[: self.random.randint(1, 2)]}
        self.producers = [self._producer(name) for name in self.rows]
        self._budget = self.random.randint(0, 8)
        self._weights: dict[Callable[[], None], float] = {
            self._hear: 60,
            self._obey: 60,
            self._work_slots: 40,
            self._land: 20,
            self._ingest: 40,
            self._exchange: 40,
            self._flush: 30,
            self._produce: 30,
            self._take: 30,
            self._pass_time: 14,
            self._beat: 8,
            self._connect: 10,
            self._fail: 1,
        }
        for action in self._weights:  # each walk is slow at something else
            self._weights[action] *= self.random.choice((0.15, 0.5, 1.0, 1.0, 1.0, 2.0))

    def run(self, steps: int) -> None:
        """Raises ViolationError."""
        for action in self.random.choices(list(self._weights), list(self._weights.values()), k=steps):
            action()
        self.finish()

    # what there is

    @property
    def owner(self) -> Owner:
        """The newest."""
        return self.owners[-1]

    def _owner(self, epoch: int) -> Owner:
        policy = RoundPolicy(checkpoint_interval=self._interval)
        core = self._make(epoch, dict(self.log.channels), policy, KEY_GROUPS, self.now)
        return Owner(self.log, epoch, core, self.random, self._puts, self._refusals)

    def _start_writer(self, process: str = "", address: str = "") -> None:
        self._processes += 1
        process = process or f"w{self._processes}"
        self.writers[process] = Writer(process, address or f"host{self._processes}", self.log, self._exchanges, self._broken)

    def _producer(self, channel: str) -> Producer:
        return Producer(channel, self.rows[channel], self.random)

    def _is_slow(self, process: str) -> bool:
        """In some walks orders to some writers take long: the exchange is faster than they are (rule EX5)."""
        return self._slow is not None and len(process) + ord(process[-1]) & 1 == self._slow

    def _any_writer(self) -> Writer | None:
        return self.random.choice(list(self.writers.values())) if self.writers else None

    # random steps

    def _hear(self) -> None:
        if links := [link for link in self.links if link.up or link.broken]:
            self._hear_one(self.random.choice(links))

    def _hear_one(self, link: Link) -> None:
        link.owner.hear(link, self.now)

    def _obey(self) -> None:
        if links := [link for link in self.links if link.down or link.broken]:
            link = self.random.choice(links)
            if not (self._is_slow(link.process) and self.random.random() < 0.9):
                self._obey_one(link)

    def _obey_one(self, link: Link) -> None:
        writer = self.writers.get(link.process)
        if writer is None or writer.links.get(link.owner.epoch) is not link:
            link.down.clear()
        elif link.down:
            writer.obey(link, *link.down.popleft())
            if writer.released:
                self._stop_writer(writer)
        elif link.broken:
            del writer.links[link.owner.epoch]
            if self._forgets and writer.tag[0] == link.owner.epoch:
                writer.forget()

    def _work_slots(self) -> None:
        if owners := [owner for owner in self.owners if owner.committer.answers or not owner.committer.idle]:
            self._work_one(self.random.choice(owners))

    def _work_one(self, owner: Owner) -> None:
        if self.random.random() < 0.5:
            owner.committer.step()
        else:
            owner.answer(self.now)
        self._retire()

    def _retire(self) -> None:
        """Owners that are over serve no more; somebody takes a table that was handed over."""
        if self.owner.over:
            self._take_over()
        for owner in self.owners[:-1]:
            if owner.over:
                self._end_owner(owner)

    def _end_owner(self, owner: Owner) -> None:
        self.owners.remove(owner)
        self.aborts += owner.aborts
        for link in self.links:
            if link.owner is owner:
                link.break_at_random(self.random)

    def _take_over(self) -> None:
        self.owners.append(self._owner(self.owner.epoch + 1))

    def _land(self) -> None:
        if self._puts:
            self.log.land(self._puts.pop(self.random.randrange(len(self._puts))))

    def _ingest(self) -> None:
        if writers := [writer for writer in self.writers.values() if writer.fifo]:
            self.random.choice(writers).ingest()

    def _exchange(self) -> None:
        streams = [stream for stream in self._exchanges.values() if stream.frames]
        if streams:
            self._receive(self.random.choice(streams))

    def _receive(self, stream: Exchange) -> None:
        receiver = self.writers.get(stream.receiver)
        if receiver is None:
            stream.frames.clear()
        else:
            receiver.receive(stream)

    def _flush(self) -> None:
        if writer := self._any_writer():
            writer.flush(early=self.random.random() < 0.3)

    def _produce(self) -> None:
        producer = self.random.choice(self.producers)
        writer = self._any_writer()
        if producer.idle and writer is not None and writer.open(producer, "somebody"):
            producer.opening = True
        elif producer.has_more:
            producer.send()
            if writer is not None and self.random.random() < 0.3:
                writer.report(events.RoundAsked(writer.process, writer.tag[1]))

    def _take(self) -> None:
        writers = self.writers.values()
        streams = [(writer, each) for writer in writers for each in writer.connections if each.batches or not each.producer]
        if streams:
            writer, connection = self.random.choice(streams)
            if connection.producer is None and self._late_batches and self.random.random() < 0.9:
                return
            writer.take(connection)
            if connection.over:
                writer.connections.remove(connection)

    def _pass_time(self) -> None:
        self.now += self.random.choice((0.01, 0.1, 0.3, 0.3, 0.6, 0.6, 2.0))
        self._tick()

    def _tick(self) -> None:
        for owner in list(self.owners):
            due = owner.core.deadline()
            if due is not None and due <= self.now:
                owner.tell(events.Tick(), self.now)
        self._retire()

    def _beat(self) -> None:
        if writer := self._any_writer():
            self._beat_one(writer)

    def _beat_one(self, writer: Writer) -> None:
        writer.report(events.LoadReported(writer.process, writer.uncommitted))

    def _connect(self) -> None:
        if writer := self._any_writer():
            self._connect_one(writer, self.random.choice(self.owners))

    def _connect_one(self, writer: Writer, owner: Owner) -> None:
        if owner.epoch not in writer.links and not owner.over:
            link = writer.links[owner.epoch] = Link(owner, writer.process, writer.address)
            self.links.append(link)
            if writer.leaving:
                link.report(events.WriterLeaving(writer.process))
        self.links = [link for link in self.links if not (link.broken and not link.up and not self._listens(link))]

    def _listens(self, link: Link) -> bool:
        """Whether an end has still to notice that it broke."""
        writer = self.writers.get(link.process)
        heard = link.owner.links.get(link.process) is link and not link.owner.over
        return heard or (writer is not None and writer.links.get(link.owner.epoch) is link)

    # faults

    def _fail(self) -> None:
        if self._budget > 0:
            self._budget -= 1
            fault = self.random.choice(
                (
                    self._kill_writer,
                    self._kill_writer,
                    self._break_link,
                    self._break_link,
                    self._lose_owner,
                    self._lose_owner,
                    self._leave,
                    self._join,
                    self._report_broken,
                    self._new_producer,
                    self._new_producer,
                    self._break_client,
                    self._break_client,
                    self._hand_over,
                )
            )
            fault()
            self.faults[fault.__name__] = self.faults.get(fault.__name__, 0) + 1

    def _kill_writer(self) -> None:
        writer = self._any_writer()
        if writer is not None:
            self._stop_writer(writer)
            if self.random.random() < 0.8:
                self._start_writer(writer.process if self._same_process else "", writer.address)

    def _stop_writer(self, writer: Writer) -> None:
        del self.writers[writer.process]
        writer.die()
        for link in writer.links.values():
            link.break_at_random(self.random)
        for stream in self._exchanges.values():
            if stream.sender == writer.process:
                for _ in range(self.random.randint(0, len(stream.frames))):
                    stream.frames.pop()

    def _break_link(self) -> None:
        if self.links:
            self.random.choice(self.links).break_at_random(self.random)

    def _lose_owner(self) -> None:
        """Another takes over; the old one is dead, or wakes up and goes on."""
        old = self.owner
        self._take_over()
        if self.random.random() < 0.5:
            self._end_owner(old)

    def _leave(self) -> None:
        writer = self._any_writer()
        if writer is not None and not writer.leaving:
            writer.leaving = True
            for link in writer.links.values():
                link.report(events.WriterLeaving(writer.process))

    def _join(self) -> None:
        self._start_writer()

    def _report_broken(self) -> None:
        if writer := self._any_writer():
            writer.report(events.Broken(writer.process, writer.tag[1], "its disk is full"))

    def _new_producer(self) -> None:
        """Under a name that another producer has, which may be dead or not know of it."""
        old = self.random.choice(self.producers)
        self.producers.append(self._producer(old.channel))
        if self.random.random() < 0.3:
            old.dead = True
            old.leave()

    def _break_client(self) -> None:
        self.random.choice(self.producers).leave()

    def _hand_over(self) -> None:
        self.owner.tell(events.DrainAsked(), self.now)
        self._retire()

    # fair steps

    def finish(self) -> None:
        """No more faults: everything gets committed, then nothing happens any more."""
        for owner in self.owners:
            owner.committer.refusals = 0.0
        self._refusals = 0.0
        if all(writer.leaving for writer in self.writers.values()):
            self._start_writer()
        for name in self.rows:
            if all(producer.dead or producer.fenced for producer in self.producers if producer.channel == name):
                self.producers.append(self._producer(name))
        for _ in range(FAIR_PASSES):
            if all(self.log.offset(name) == rows for name, rows in self.rows.items()):
                break
            self._pass()
        else:
            offsets = {name: self.log.offset(name) for name in self.rows}
            raise StuckError(f"not everything was committed: {offsets} of {self.rows}")
        self._check_idle()

    def _check_idle(self) -> None:
        for producer in self.producers:
            producer.dead = True
            producer.leave()
        for _ in range(IDLE_PASSES):
            self._pass(1.0)
        before = (len(self.log.slots), self.owner.core.round, self.owner.core.generation)
        for _ in range(IDLE_PASSES):
            self._pass(1.0)
        if before != (len(self.log.slots), self.owner.core.round, self.owner.core.generation) or self.owner.core.deadline():
            raise StuckError("the idle table does something")

    def _pass(self, seconds: float = 0.1) -> None:
        self.now += seconds
        for writer in list(self.writers.values()):
            for owner in self.owners:
                self._connect_one(writer, owner)
            self._beat_one(writer)
        for producer in self.producers:
            self._serve(producer)
        for writer in self.writers.values():
            for connection in list(writer.connections):
                while not connection.over or connection.client_gone:
                    more = bool(connection.batches)
                    writer.take(connection)
                    if not more:
                        break
                if connection.over:
                    writer.connections.remove(connection)
            while writer.fifo:
                writer.ingest()
        for stream in self._exchanges.values():
            for _ in range(len(stream.frames)):
                self._receive(stream)
        for writer in self.writers.values():
            writer.flush()
        self._settle()

    def _serve(self, producer: Producer) -> None:
        writer = self._any_writer()
        if producer.idle and writer is not None and writer.open(producer, "somebody"):
            producer.opening = True
        while producer.has_more:
            producer.send()

    def _settle(self) -> None:
        """Control streams and slot work, until nothing is under way."""
        for link in list(self.links):
            for _ in range(len(link.up) + 1):
                self._hear_one(link)
            for _ in range(len(link.down) + 1):
                self._obey_one(link)
        while self._puts:
            self._land()
        for owner in list(self.owners):
            while not owner.over and not (owner.committer.idle and not owner.committer.answers):
                owner.committer.step()
                owner.answer(self.now)
                while self._puts:
                    self._land()
        self._tick()
