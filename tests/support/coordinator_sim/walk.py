"""One seed: random steps with faults, then fair steps without. Each commit is checked as it lands (``SlotLog``)."""

from collections.abc import Callable, Set

from headgate_coordinator.core import events
from headgate_coordinator.core.table_coordinator import TableCoordinator
from support.coordinator_sim.cluster import Cluster
from support.coordinator_sim.rest import come_to_rest


class Walk(Cluster):
    """Each walk is slow at something else, so that rare orders of events become common in some."""

    def __init__(
        self,
        seed: int,
        make: type[TableCoordinator] = TableCoordinator,
        broken: Set[str] = frozenset(),
        *,
        same_process: bool = False,
    ) -> None:
        super().__init__(seed, make, broken, same_process=same_process)
        self.faults: dict[str, int] = {}
        self._budget = self.random.randint(0, 8)
        self._slow = self.random.choice((None, None, 0, 1))
        self._late_batches = self.random.random() < 0.3
        self._weights: dict[Callable[[], None], float] = {
            self._hear: 60,
            self._obey: 60,
            self._work_slots: 40,
            self._land: 20,
            self._ingest: 40,
            self._receive: 40,
            self._flush: 30,
            self._produce: 30,
            self._take: 30,
            self._pass_time: 14,
            self._beat: 8,
            self._connect: 10,
            self._fail: 1,
        }
        for action in self._weights:
            self._weights[action] *= self.random.choice((0.15, 0.5, 1.0, 1.0, 1.0, 2.0))

    def run(self, steps: int) -> None:
        """Raises ViolationError as soon as a commit is wrong, and StuckError when the end is."""
        self.go(steps)
        come_to_rest(self)

    def go(self, steps: int) -> None:
        """Only the random steps."""
        for action in self.random.choices(list(self._weights), list(self._weights.values()), k=steps):
            action()

    def _hear(self) -> None:
        if links := [link for link in self.links if link.up or link.broken]:
            self.hear(self.random.choice(links))

    def _obey(self) -> None:
        if links := [link for link in self.links if link.down or link.broken]:
            link = self.random.choice(links)
            if not (self._is_slow(link.process) and self.random.random() < 0.9):
                self.obey(link)

    def _is_slow(self, process: str) -> bool:
        """In some walks orders to some writers take long: the exchange is faster than they are (rule EX5)."""
        return self._slow is not None and ord(process[-1]) % 2 == self._slow

    def _work_slots(self) -> None:
        if owners := [owner for owner in self.owners if owner.committer.answers or not owner.committer.idle]:
            owner = self.random.choice(owners)
            if self.random.random() < 0.5:
                owner.committer.step()
            else:
                owner.answer(self.now)
            self.retire()

    def _land(self) -> None:
        if self.puts:
            self.land()

    def _ingest(self) -> None:
        if writers := [writer for writer in self.writers.values() if writer.fifo]:
            self.random.choice(writers).ingest()

    def _receive(self) -> None:
        if streams := [stream for stream in self.exchanges.values() if stream.frames]:
            self.receive(self.random.choice(streams))

    def _flush(self) -> None:
        if writer := self.any_writer():
            writer.flush(early=self.random.random() < 0.3)

    def _produce(self) -> None:
        producer = self.random.choice(self.producers)
        if producer.idle:
            self.open(producer)
        elif producer.has_more:
            producer.send()
            if self.random.random() < 0.3 and (writer := self.any_writer()):
                writer.report(events.CheckpointAsked(writer.process, writer.tag[1]))

    def _take(self) -> None:
        writers = self.writers.values()
        streams = [(writer, each) for writer in writers for each in writer.connections if each.batches or not each.producer]
        if streams:
            writer, connection = self.random.choice(streams)
            if connection.producer is not None or not self._late_batches or self.random.random() < 0.1:
                self.take(writer, connection)

    def _pass_time(self) -> None:
        self.now += self.random.choice((0.01, 0.1, 0.3, 0.3, 0.6, 0.6, 2.0))
        self.tick()

    def _beat(self) -> None:
        if writer := self.any_writer():
            self.beat(writer)

    def _connect(self) -> None:
        if writer := self.any_writer():
            self.connect(writer, self.random.choice(self.owners))

    # Faults.

    def _fail(self) -> None:
        if self._budget > 0:
            self._budget -= 1
            often = (self._kill_writer, self._break_link, self._lose_owner, self._new_producer, self._break_client)
            seldom = (self._leave, self.start_writer, self._report_broken, self._hand_over)
            fault = self.random.choice((*often, *often, *seldom))
            fault()
            self.faults[fault.__name__] = self.faults.get(fault.__name__, 0) + 1

    def _kill_writer(self) -> None:
        if writer := self.any_writer():
            self.stop_writer(writer)
            if self.random.random() < 0.8:
                self.start_writer(writer.process if self.same_process else "", writer.address)

    def _break_link(self) -> None:
        if self.links:
            self.random.choice(self.links).break_at_random(self.random)

    def _lose_owner(self) -> None:
        """Another takes over; the old one is dead, or wakes up and goes on."""
        old = self.owner
        self.take_over()
        if self.random.random() < 0.5:
            self.end_owner(old)

    def _leave(self) -> None:
        writer = self.any_writer()
        if writer is not None and not writer.leaving:
            writer.leaving = True
            for link in writer.links.values():
                link.report(events.WriterLeaving(writer.process))

    def _report_broken(self) -> None:
        if writer := self.any_writer():
            writer.report(events.Broken(writer.process, writer.tag[1], "its disk is full"))

    def _new_producer(self) -> None:
        """The older one of that name may be dead, or not know of it."""
        old = self.random.choice(self.producers)
        self.producers.append(self.producer(old.channel))
        if self.random.random() < 0.3:
            old.die()

    def _break_client(self) -> None:
        self.random.choice(self.producers).leave()

    def _hand_over(self) -> None:
        self.owner.tell(events.DrainAsked(), self.now)
        self.retire()
