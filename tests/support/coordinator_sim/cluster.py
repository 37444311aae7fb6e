"""A whole cluster around the real TableCoordinator, in memory: what there is, and each single step that it can take."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from random import Random

from headgate_coordinator.core import events
from headgate_coordinator.core.events import SliceFigures
from headgate_coordinator.core.policy import CheckpointPolicy
from headgate_coordinator.core.table_coordinator import TableCoordinator
from support.coordinator_sim.bucket_side import Exchange, Tag
from support.coordinator_sim.owner import Link, Owner
from support.coordinator_sim.producer import Connection, Producer
from support.coordinator_sim.slots import Slot, SlotLog
from support.coordinator_sim.writer import Writer


@dataclass(frozen=True, slots=True)
class Scale:
    """``writers``: fewest and most at the beginning. ``channels``: a walk has the first ones. ``keys``: of a channel's rows.
    ``rows``: fewest and most of a channel.
    """

    writers: tuple[int, int] = (1, 3)
    channels: Sequence[str] = ("a", "b")
    key_groups: int = 4
    keys: int = 6
    rows: tuple[int, int] = (8, 30)


class Cluster:
    """``broken``: rules that writers do not keep. ``same_process``: a restarted writer keeps its process id (against RO8).

    ``limit``: log files of a slice; 0: they are not bounded. ``deaf``: before faults stop the store does not say who owns it.
    ``windows``: bytes that the first checkpoints behind an outage may take. ``timeouts``: seconds that a checkpoint may stand
    still.
    """

    scale = Scale()
    limit = 0
    windows: Sequence[int] = (0, 0, 20, 60)
    timeouts: Sequence[float] = (30.0, 30.0, 3.0)

    def __init__(
        self,
        seed: int,
        make: type[TableCoordinator] = TableCoordinator,
        broken: Set[str] = frozenset(),
        *,
        same_process: bool = False,
    ) -> None:
        self.random = Random(seed)
        self.deaf = Random(seed + 3_000_000).random() < 0.5
        self.log = SlotLog(self.limit)
        self.now = 100.0
        self.puts: list[Slot] = []
        self.refusals = self.random.choice((0.0, 0.02))
        self.exchanges: dict[tuple[Tag, str, str], Exchange] = {}
        self.links: list[Link] = []
        self.writers: dict[str, Writer] = {}
        self.same_process = same_process
        self._make = make
        self._broken = broken
        self._processes = 0
        self._interval = self.random.choice((1.0, 10.0))
        chance = Random(seed + 4_000_000)  # its own draws leave those of other walks as they are
        self._timeout, self._least = chance.choice(self.timeouts), chance.choice(self.windows)
        self.slow_flushes = chance.random() < 0.3
        self._forgets = self.random.random() < 0.5
        self.owners = [self._owner(1)]
        for _ in range(self.random.randint(*self.scale.writers)):
            self.start_writer()
        names = self.scale.channels[: self.random.randint(1, len(self.scale.channels))]
        self.rows = {name: self.random.randint(*self.scale.rows) for name in names}
        self.producers = [self.producer(name) for name in self.rows]

    @property
    def owner(self) -> Owner:
        """The newest; older ones may not know that they are outdated."""
        return self.owners[-1]

    def any_writer(self) -> Writer | None:
        """None when all are dead."""
        return self.random.choice(list(self.writers.values())) if self.writers else None

    def producer(self, channel: str) -> Producer:
        """A new one, under a name that others may have."""
        return Producer(channel, self.rows[channel], self.random, self.scale.keys)

    # Control streams.

    def connect(self, writer: Writer, owner: Owner) -> None:
        """A writer keeps one stream to each coordinator that it knows."""
        if owner.epoch not in writer.links and not owner.over:
            link = writer.links[owner.epoch] = Link(owner, writer.process, writer.address)
            self.links.append(link)
            if writer.leaving:
                link.report(events.WriterLeaving(writer.process))
        self.links = [link for link in self.links if not (link.broken and not link.up and not self._has_listeners(link))]

    def _has_listeners(self, link: Link) -> bool:
        """Whether an end has still to notice that it broke."""
        writer = self.writers.get(link.process)
        heard = link.owner.links.get(link.process) is link and not link.owner.over
        return heard or (writer is not None and writer.links.get(link.owner.epoch) is link)

    def hear(self, link: Link) -> None:
        """The owner takes the next message of a stream."""
        link.owner.hear(link, self.now)
        self.retire()

    def obey(self, link: Link) -> None:
        """The writer takes the next order of a stream, or notices that it broke."""
        writer = self.writers.get(link.process)
        if writer is None or writer.links.get(link.owner.epoch) is not link:
            link.down.clear()
        elif link.down:
            writer.obey(link, *link.down.popleft())
            if writer.released:
                self.stop_writer(writer)
        elif link.broken:
            del writer.links[link.owner.epoch]
            if self._forgets and writer.tag[0] == link.owner.epoch:
                writer.forget()

    def beat(self, writer: Writer) -> None:
        """A heartbeat."""
        writer.report(events.LoadReported(writer.process, writer.uncommitted))

    # Owners and slots.

    def _owner(self, epoch: int) -> Owner:
        policy = CheckpointPolicy(
            checkpoint_interval=self._interval, checkpoint_timeout=self._timeout, first_checkpoint_bytes=self._least
        )
        figures = SliceFigures(0, 0, self.limit, 1 << 30, counted=False) if self.limit else None
        core = self._make(epoch, dict(self.log.channels), policy, self.scale.key_groups, self.now, figures)
        owner = Owner(self.log, epoch, core, self.random, self.puts, self.refusals, policy)
        owner.committer.deaf = self.deaf
        return owner

    def take_over(self) -> None:
        """A new owner wins a FENCE and begins with what the slots say (rules T5, CH3)."""
        self.owners.append(self._owner(self.log.epoch + 1))

    def retire(self) -> None:
        """Owners that are over serve no more; somebody takes a table that was handed over."""
        if self.owner.over:
            self.take_over()
        for owner in self.owners[:-1]:
            if owner.over:
                self.end_owner(owner)

    def end_owner(self, owner: Owner) -> None:
        """Its streams end."""
        self.owners.remove(owner)
        for link in self.links:
            if link.owner is owner:
                link.break_at_random(self.random)

    def land(self) -> None:
        """A slot request arrives at the store, however old it is."""
        self.log.land(self.puts.pop(self.random.randrange(len(self.puts))))

    def tick(self) -> None:
        """Deadlines that have come."""
        for owner in list(self.owners):
            due = owner.core.deadline()
            if due is not None and due <= self.now:
                owner.tell(events.Tick(), self.now)
        self.retire()

    def look_after(self) -> None:
        """What the newest owner does for its table's health, once faults have stopped."""

    # Writers and producers.

    def start_writer(self, process: str = "", address: str = "") -> None:
        """Another process."""
        self._processes += 1
        process = process or f"w{self._processes}"
        address = address or f"host{self._processes}"
        self.writers[process] = Writer(
            process, address, self.log, self.exchanges, self._broken, self.scale.key_groups, slow_flushes=self.slow_flushes
        )

    def stop_writer(self, writer: Writer) -> None:
        """Killed, or gone after a Detach: some of what it sent still arrives."""
        del self.writers[writer.process]
        writer.die()
        for link in writer.links.values():
            link.break_at_random(self.random)
        for stream in self.exchanges.values():
            if stream.sender == writer.process:
                for _ in range(self.random.randint(0, len(stream.frames))):
                    stream.frames.pop()

    def receive(self, stream: Exchange) -> None:
        """The next frame of an exchange stream."""
        receiver = self.writers.get(stream.receiver)
        if receiver is None:
            stream.frames.clear()
        else:
            receiver.receive(stream)

    def take(self, writer: Writer, connection: Connection) -> None:
        """The next batch of a client's stream."""
        writer.take(connection)
        if connection.over:
            writer.connections.remove(connection)

    def open(self, producer: Producer) -> None:
        """At any writer."""
        writer = self.any_writer()
        if writer is not None and writer.open(producer, "somebody"):
            producer.opening = True
