"""What the parts of one table's pure core share: who takes part, which checkpoints and channels there are, and what is to be
done.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from headgate_coordinator.core.aborts import Aborts
from headgate_coordinator.core.channels import ChannelRegistry, OpenConditions
from headgate_coordinator.core.checkpoint_size import CheckpointSize
from headgate_coordinator.core.checkpoints import Checkpoint
from headgate_coordinator.core.events import SliceFigures
from headgate_coordinator.core.instructions import Attach, DropCheckpoint, Instruction, Membership, Order, Send
from headgate_coordinator.core.intake import Intake
from headgate_coordinator.core.members import Members
from headgate_coordinator.core.membership import Memberships
from headgate_coordinator.core.policy import CheckpointPolicy
from headgate_coordinator.core.retry import Retry
from headgate_coordinator.core.sequence import CheckpointSequence


class TableState:
    """``now``: of the newest event, monotonic seconds. ``out``: what is to be done because of it, in order.

    ``draining``: the table is to be handed over, and nobody begins anything.
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
        self.channels = ChannelRegistry(channels)
        self.memberships = Memberships(key_groups)
        self.intake = Intake(figures, policy.checkpoint_interval)
        self.checkpoints = CheckpointSequence()
        self.size = CheckpointSize(policy.first_checkpoint_bytes, policy.flush_target)
        if channels:  # somebody may have kept much while nobody owned the table
            self.size.restart_small()
        self.retry = Retry(policy)
        self.aborts = Aborts(policy)

    @property
    def generation(self) -> int:
        """Spans without an abort, counted from 1."""
        return self.checkpoints.generation

    @property
    def eligible(self) -> list[tuple[str, str]]:
        """Process and address of those who take part in the next checkpoint."""
        return [] if self.draining else self.members.staying_members

    @property
    def uncommitted(self) -> Sequence[int]:
        """Arrow bytes by writer that are in no checkpoint which flushes already."""
        return self.members.uncommitted_bytes(self.checkpoints.flushing)

    def open_conditions(self) -> OpenConditions:
        """What answers to opens depend on."""
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
        """Those that wait may be answered now."""
        self.out += self.channels.answer_opens(self.open_conditions())

    def next_membership(self, number: int, members: Sequence[tuple[str, str]], before: Sequence[Checkpoint]) -> Membership:
        """Of a checkpoint that is to begin; ``before``: all whose rows may still become files."""
        return replace(
            self.memberships.next_membership(number, members), share=self.intake.share_of_next(before), intake=self.size.limit
        )

    def begin_intake(self) -> None:
        """The filling checkpoint is new: rows come into it, or none as long as slices are full."""
        self.checkpoints.filling.takes_rows = self.intake.is_open
        self.checkpoints.filling.slices_were_counted = self.intake.backpressure.is_counted
        self.send_throttles()

    def attach_writers(self, processes: Iterable[str]) -> None:
        """They take part in the generation, from the filling checkpoint on."""
        for process in processes:
            self.members.attached.add(process)
            self.intake.reset_writer(process)
            self.send_order(process, Attach(self.checkpoints.filling.membership))

    def drop_transaction(self, each: Checkpoint) -> None:
        """Its transaction is given up, if there is one."""
        if each.instant_asked:
            self.out.append(DropCheckpoint(each.generation, each.number))

    def send_throttles(self) -> None:
        """Whoever has to hear of another one."""
        for process, order in self.intake.changed_orders(sorted(self.members.attached), self.checkpoints.filling.members):
            self.send_order(process, order)

    def send_to_members(self, each: Checkpoint, order: Order) -> None:
        """To the members of the checkpoint, unless its generation is over."""
        if each.generation == self.generation:
            for process in each.members:
                self.send_order(process, order)

    def send_order(self, process: str, order: Order) -> None:
        """Under the generation of now; to nobody when the process is gone."""
        if process in self.members:
            self.out.append(Send(process, self.generation, order))
