"""State that the parts of one table's pure core share: writers, checkpoints, channels, and instructions to execute."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from headgate_coordinator.core.aborts import Aborts
from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.core.channels import ChannelRegistry
from headgate_coordinator.core.checkpoint_size import CheckpointSize
from headgate_coordinator.core.checkpoints import Checkpoint
from headgate_coordinator.core.events import SliceFigures
from headgate_coordinator.core.failing_writers import FailingWriters
from headgate_coordinator.core.instructions import Attach, DropCheckpoint, Instruction, Membership, Order, Send
from headgate_coordinator.core.intake_limits import IntakeLimits
from headgate_coordinator.core.live_channels import OpenConditions
from headgate_coordinator.core.members import Members
from headgate_coordinator.core.membership import Memberships
from headgate_coordinator.core.policy import CheckpointPolicy
from headgate_coordinator.core.retry import Retry
from headgate_coordinator.core.sequence import CheckpointSequence
from headgate_coordinator.core.writer_records import WriterRecords


class TableState:
    """``now``: of the newest event, monotonic seconds. ``out``: the instructions that follow from it, in order.

    ``draining``: the table is being handed over, and no checkpoint begins.
    """

    def __init__(
        self,
        channels: Mapping[str, Sequence[int | str]],
        policy: CheckpointPolicy,
        key_groups: int,
        now: float,
        figures: SliceFigures | None,
    ) -> None:
        self.policy = policy
        self.now = now
        self.out: list[Instruction] = []
        self.draining = False
        self.members = Members()
        self.records = WriterRecords()
        self.failing = FailingWriters()
        self.channels = ChannelRegistry(channels, policy.channel_retention, now)
        self.memberships = Memberships(key_groups)
        self.intake_limits = IntakeLimits(figures, policy.checkpoint_interval)
        self.checkpoints = CheckpointSequence()
        self.size = CheckpointSize(policy.first_checkpoint_bytes, policy.flush_target)
        if channels:  # clients may have kept many rows while the table had no owner
            self.size.restart_small()
        self.retry = Retry(policy)
        self.aborts = Aborts(policy)

    @property
    def generation(self) -> int:
        """Spans without an abort, counted from 1."""
        return self.checkpoints.generation

    @property
    def eligible(self) -> list[tuple[str, str]]:
        """Process and address of each member of the next checkpoint."""
        return [] if self.draining else self.members.staying_members

    @property
    def uncommitted(self) -> Sequence[int]:
        """Uncommitted Arrow bytes by writer, without those of the flushing checkpoint."""
        return self.members.uncommitted_bytes(self.checkpoints.flushing)

    @property
    def is_resting(self) -> bool:
        """Whether the table has writers, and nothing waits for a checkpoint."""
        filling, waiting = self.checkpoints.filling, self.channels.awaited_checkpoint or self.aborts.opens_at is not None
        return bool(filling.members) and self.checkpoints.is_over and filling.dirty_since is None and not waiting

    @property
    def alarms(self) -> Sequence[StandingAlarm]:
        """Alarms for operators."""
        alone = not (self.checkpoints.filling.members or self.draining)
        alarms = [StandingAlarm(AlarmKind.NO_WRITER, "no writer is attached to the table")] if alone else []
        return [*alarms, *self.members.alarms(self.now), *self.aborts.alarms(self.now), *self.intake_limits.backpressure.alarms]

    def open_conditions(self) -> OpenConditions:
        """The state on which answers to opens depend."""
        checkpoints = self.checkpoints
        return OpenConditions(
            generation=checkpoints.generation,
            now=self.now,
            writer_timeout=self.policy.writer_timeout,
            taking=dict(self.eligible).keys() & checkpoints.filling.members.keys(),
            decided=checkpoints.last_decided,
            blocked=checkpoints.blocked or self.aborts.opens_at is not None,
            draining=self.draining,
        )

    def answer_opens(self) -> None:
        """Answers waiting opens that can be answered now."""
        self.out += self.channels.answer_opens(self.open_conditions())

    def forget_idle_channels(self) -> None:
        """Forgets channels that nobody uses, when it is time to look for some."""
        if (look_at := self.channels.look_at) is not None and look_at <= self.now:
            self.out += self.channels.forget_idle(self.open_conditions())

    def next_membership(self, number: int, members: Sequence[tuple[str, str]], before: Sequence[Checkpoint]) -> Membership:
        """Membership of the checkpoint that begins; ``before``: checkpoints whose rows may still become files."""
        return replace(
            self.memberships.next_membership(number, members),
            share=self.intake_limits.share_of_next(before),
            intake_bytes=self.size.limit,
        )

    def begin_intake(self) -> None:
        """Begins intake of the filling checkpoint; it takes no rows while slices are full."""
        self.checkpoints.filling.takes_rows = self.intake_limits.is_open
        self.checkpoints.filling.slices_were_counted = self.intake_limits.backpressure.is_counted
        self.send_throttles()

    def attach_writers(self, processes: Iterable[str]) -> None:
        """Attaches writers from the filling checkpoint on."""
        for process in processes:
            self.members.attach(process)
            self.intake_limits.reset_writer(process)
            self.send_order(process, Attach(self.checkpoints.filling.membership))

    def drop_transaction(self, each: Checkpoint) -> None:
        """Rolls back the checkpoint's transaction, if there is one."""
        if each.instant_asked:
            self.out.append(DropCheckpoint(each.generation, each.number))

    def send_throttles(self) -> None:
        """Sends changed throttles and refused slices to attached writers."""
        for process, order in self.intake_limits.changed_orders(sorted(self.members.attached), self.checkpoints.filling.members):
            self.send_order(process, order)

    def send_to_members(self, each: Checkpoint, order: Order) -> None:
        """Sends an order to all members of the checkpoint, unless its generation is over."""
        if each.generation == self.generation:
            for process in each.members:
                self.send_order(process, order)

    def send_order(self, process: str, order: Order) -> None:
        """Sends an order under the current generation, unless the writer is gone."""
        if process in self.members:
            self.out.append(Send(process, self.generation, order))
