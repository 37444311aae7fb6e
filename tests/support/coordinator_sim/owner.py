"""One ownership of the table: the real TableCoordinator, its committer, and the control streams that it serves."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from headgate_coordinator.core import events, instructions
from headgate_coordinator.core.events import Event
from headgate_coordinator.core.instructions import Instruction, Order
from headgate_coordinator.core.policy import CheckpointPolicy
from headgate_coordinator.core.table_coordinator import TableCoordinator
from support.coordinator_sim.patience import Patience
from support.coordinator_sim.slots import Slot, SlotLog, ViolationError


class Link:
    """A control stream. It breaks as a whole: in each direction what had arrived stays, the rest is lost."""

    def __init__(self, owner: "Owner", process: str, address: str) -> None:
        self.owner = owner
        self.process = process
        self.up: deque[Event] = deque([events.WriterJoined(process, address)])
        self.down: deque[tuple[int, Order]] = deque()
        self.broken = False

    def break_at_random(self, random: Random) -> None:
        """Each side notices when it has taken what had arrived."""
        if not self.broken:
            self.broken = True
            for queue in (self.up, self.down):
                for _ in range(random.randint(0, len(queue))):
                    queue.pop()

    def report(self, event: Event) -> None:
        """From the writer."""
        if not self.broken:
            self.up.append(event)

    def order(self, generation: int, order: Order) -> None:
        """From the owner."""
        if not self.broken:
            self.down.append((generation, order))


@dataclass(frozen=True, slots=True)
class Compact:
    """These slices get base files, and have no log files then."""

    slices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Count:
    """Tells what the slices are like."""


Work = Instruction | Compact | Count


class Committer:
    """Executes slot work one after the other; a slot request is repeated until its outcome is known (rule C4).

    ``deaf``: the store does not say who owns the table; it is asked again later.
    """

    def __init__(self, log: SlotLog, epoch: int, random: Random, puts: list[Slot], refusals: float) -> None:
        self.queue: deque[Work] = deque()
        self.answers: deque[Event] = deque()
        self.deposed = False
        self.refusals = refusals
        self.deaf = False
        self._in_doubt = False
        self._log = log
        self._epoch = epoch
        self._random = random
        self._puts = puts
        self._number = len(log.slots)
        self._instants: dict[tuple[int, int], str] = {}
        self._issued = 0
        self._sent: tuple[Slot, Work] | None = None
        self._publish: deque[Event] = deque()
        self.counted = False

    @property
    def idle(self) -> bool:
        """Nothing is left to do."""
        return not self.queue and self._sent is None and not self._publish and (self.deaf or not self._in_doubt)

    def step(self) -> None:
        """One step of whatever is first."""
        if self._publish:
            self.answers.append(self._publish.popleft())
        elif self._sent is not None:
            self._look(*self._sent)
        elif self.queue:
            self._begin(self.queue.popleft())
        if self._in_doubt and not self.deaf and self._sent is None:
            self._in_doubt = False
            self.deposed = self.deposed or len(self._log.slots) > self._number

    def _begin(self, work: Work) -> None:
        refused = self._random.random() < self.refusals
        if isinstance(work, instructions.DropCheckpoint):
            self._instants.pop((work.generation, work.checkpoint), None)
        elif isinstance(work, instructions.IssueInstant):
            self._issue(work, refused)
        elif isinstance(work, instructions.WinOffsets):
            if refused:
                self.answers.append(events.OffsetsRefused(work.number, "refused"))
            else:
                self._send(Slot(self._number, "offsets", channels=work.channels), work)
        elif isinstance(work, instructions.CommitCheckpoint):
            self._commit(work, refused)
        elif isinstance(work, instructions.AskLog):
            self._in_doubt = True
        elif isinstance(work, Compact):
            self._send(Slot(self._number, "compaction", compacted=work.slices), work)
        elif isinstance(work, Count):
            self.answers.append(self.figures)

    def _issue(self, work: instructions.IssueInstant, refused: bool) -> None:
        if any(each > (work.generation, work.checkpoint) for each in self._instants):
            raise ViolationError(f"{work} comes behind {list(self._instants)}")
        if len(self._instants) >= 2:
            raise ViolationError(f"{work} is the third open instant beside {list(self._instants)}")
        if refused:
            self.answers.append(events.InstantRefused(work.generation, work.checkpoint, "refused"))
            return
        self._issued += 1
        instant = self._instants[work.generation, work.checkpoint] = f"{self._epoch}.{self._issued}"
        self.answers.append(events.InstantIssued(work.generation, work.checkpoint, instant))

    def _commit(self, work: instructions.CommitCheckpoint, refused: bool) -> None:
        instant = self._instants.get((work.generation, work.checkpoint))
        if bool(work.files) != (instant is not None):
            raise ViolationError(f"{work} with {len(work.files)} files and the instant {instant} (rule RO5)")
        if instant is not None and next(iter(self._instants)) != (work.generation, work.checkpoint):
            raise ViolationError(f"{work} before the older instants of {list(self._instants)}")
        if refused:
            self.answers.append(events.CommitRefused(work.generation, work.checkpoint, "refused"))
        else:
            self._send(Slot(self._number, "commit", instant, work.files, work.channels), work)

    def _send(self, slot: Slot, work: Work) -> None:
        self._sent = (slot, work)
        self._puts.append(slot)

    def _look(self, slot: Slot, work: Work) -> None:
        if len(self._log.slots) <= slot.number:
            return
        self._sent = None
        if self._log.slots[slot.number] is not slot:
            self.deposed = True
            return
        self._number += 1
        if isinstance(work, instructions.WinOffsets):
            self.answers.append(events.OffsetsWon(work.number))
        elif isinstance(work, instructions.CommitCheckpoint):
            self._instants.pop((work.generation, work.checkpoint), None)
            self.answers.append(events.SlotWon(work.generation, work.checkpoint))
            self._publish.append(events.Published(work.generation, work.checkpoint))
            if work.files and self._log.limit:
                self._publish.append(self.figures)
        elif isinstance(work, Compact):
            self.counted = True
            self.answers.append(self.figures)

    def unpublished(self, generation: int) -> Iterator[int]:
        """Checkpoints of a generation whose slots are won, and that readers do not see yet."""
        for event in self._publish:
            if isinstance(event, events.Published) and event.generation == generation:
                yield event.checkpoint

    @property
    def figures(self) -> events.SliceFigures:
        """Of this moment; zeros that say so before the slices were counted."""
        files = max(self._log.log_files) if self.counted else 0
        return events.SliceFigures(files, 0, self._log.limit, 1 << 30, counted=self.counted)

    def count(self) -> None:
        """The listing has come in."""
        if not self.counted:
            self.counted = True
            self.queue.append(Count())


class Owner:
    """Wins a FENCE when it is made. ``links``: the control stream of each process that has said hello."""

    def __init__(
        self,
        log: SlotLog,
        epoch: int,
        core: TableCoordinator,
        random: Random,
        puts: list[Slot],
        refusals: float,
        policy: CheckpointPolicy,
    ) -> None:
        log.land(Slot(len(log.slots), "fence"))
        self.epoch = epoch
        self.core = core
        self.committer = Committer(log, epoch, random, puts, refusals)
        self.links: dict[str, Link] = {}
        self.drained = False
        self.left = False
        self.aborts = 0
        self._random = random
        self._patience = Patience(policy)

    @property
    def over(self) -> bool:
        """It serves no more: deposed, handed over, or given up since another has the lease."""
        return self.committer.deposed or self.drained or self.left

    def hear(self, link: Link, now: float) -> None:
        """The next message on a control stream, or its end."""
        if link.up:
            event = link.up.popleft()
            if isinstance(event, events.WriterJoined):
                if link.process in self.links:  # one stream a process: the other one is cut, whichever is newer
                    self.links[link.process].break_at_random(self._random)
                self._lose(link.process, now)
                self.links[link.process] = link
            if self.links.get(link.process) is link:
                self.tell(event, now)
        elif link.broken and self.links.get(link.process) is link:
            self._lose(link.process, now)

    def _lose(self, process: str, now: float) -> None:
        if self.links.pop(process, None) is not None:
            self.tell(events.WriterLost(process, "its stream broke"), now)

    def tell(self, event: Event, now: float) -> None:
        """Hands it to the core and does what it says."""
        if self.over:
            return
        self._patience.told(event, now)
        for instruction in self.core.handle_event(event, now):
            self._patience.says(instruction, now)
            self._do(instruction)
        due = self.core.deadline()
        if due is not None and due <= now:
            raise ViolationError(f"the deadline {due} is still there at {now} after {event}")

    def _do(self, instruction: Instruction) -> None:
        if isinstance(instruction, instructions.Send):
            self._check_visible(instruction)
            link = self.links.get(instruction.process)
            if link is not None:
                link.order(instruction.generation, instruction.order)
        elif isinstance(instruction, instructions.Evict):
            link = self.links.get(instruction.process)
            if link is not None:
                link.break_at_random(self._random)
        elif isinstance(instruction, instructions.Drained):
            self.drained = True
        elif isinstance(instruction, instructions.Alarm):
            self.aborts += 1
        else:
            self.committer.queue.append(instruction)

    def _check_visible(self, told: instructions.Send) -> None:
        """A writer takes an ack for all checkpoints up to it."""
        order = told.order
        seen = order.checkpoint if isinstance(order, instructions.Decided) and order.queryable else 0
        if any(number <= seen for number in self.committer.unpublished(told.generation)):
            raise ViolationError(f"{told} before readers see all of it")

    def answer(self, now: float) -> None:
        """The committer's next answer reaches the core."""
        if self.committer.answers:
            self.tell(self.committer.answers.popleft(), now)
