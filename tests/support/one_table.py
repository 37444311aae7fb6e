"""A TableCoordinator with a clock that is set by hand, and short ways through what a test is not about."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from headgate_coordinator.core.events import (
    BarrierPassed,
    ChannelEnded,
    Event,
    Flushed,
    InstantAsked,
    InstantIssued,
    LoadReported,
    OffsetsWon,
    OpenRequested,
    Published,
    SliceFigures,
    SlotWon,
    WriterJoined,
)
from headgate_coordinator.core.instructions import Instruction, Membership, Send, WinOffsets
from headgate_coordinator.core.policy import CheckpointPolicy
from headgate_coordinator.core.table_coordinator import TableCoordinator
from headgate_coordinator.core.tally import Tally

Kind = TypeVar("Kind")


class OneTable:
    """``writers`` are members of the filling checkpoint; no checkpoint before it is left. Two key groups, so that memberships are
    short."""

    def __init__(
        self,
        *writers: str,
        channels: Mapping[str, Sequence[Any]] | None = None,
        policy: CheckpointPolicy | None = None,
        figures: SliceFigures | None = None,
    ) -> None:
        self.now = 0.0
        self.core = TableCoordinator(
            7, channels or {}, policy or CheckpointPolicy(first_checkpoint_bytes=0), 2, self.now, figures
        )
        self._requests = 0
        for writer in writers:
            before = self.core.checkpoint
            self.tell(joined(writer))
            if self.core.checkpoint > before:
                self.pass_all(before, *writers[: writers.index(writer)])

    def tell(self, *events: Event, after: float = 0.0) -> list[Instruction]:
        """What follows from these events, ``after`` seconds later."""
        self.now += after
        return [instruction for event in events for instruction in self.core.handle_event(event, self.now)]

    def pass_all(self, checkpoint: int, *writers: str) -> list[Instruction]:
        """A checkpoint without rows and offsets comes in from all its members."""
        passed = [self.barrier(writer, checkpoint) for writer in writers]
        return self.tell(*passed, *[self.flushed(writer, checkpoint) for writer in writers])

    def grant(self, writer: str, channel: str, *, incarnation: int = 0, principal: str = "ann") -> int:
        """Opens a channel that nobody holds; returns the hold."""
        out = self.tell(self.opens(writer, channel, incarnation=incarnation, principal=principal))
        for slot in only(WinOffsets, out):
            out += self.tell(OffsetsWon(slot.number))
        (order,) = [send.order for send in only(Send, out)]
        return int(order.hold)  # type: ignore[union-attr]

    def commit(self, checkpoint: int, writer: str, offsets: Mapping[str, int], *, size: int = 100) -> list[Instruction]:
        """The only member's checkpoint with one file, up to the CommitCheckpoint."""
        self.tell(InstantAsked(writer, self.core.generation, checkpoint), self.issued(checkpoint))
        return self.tell(self.barrier(writer, checkpoint, offsets, size), self.flushed(writer, checkpoint, ["file"]))

    def decide(self, checkpoint: int, generation: int = 0) -> list[Instruction]:
        """The committer's good news."""
        generation = generation or self.core.generation
        return self.tell(SlotWon(generation, checkpoint), Published(generation, checkpoint))

    # Events of the generation that is now.

    def opens(
        self, writer: str, channel: str, *, incarnation: int = 0, principal: str = "ann", channels: int = 0
    ) -> OpenRequested:
        """With a request number of its own. ``channels``: the principal's quota."""
        self._requests += 1
        return OpenRequested(writer, self.core.generation, self._requests, channel, incarnation, principal, channels)

    def ended(self, writer: str, channel: str, hold: int, *, uncommitted: bool) -> ChannelEnded:
        """A hold is given back."""
        return ChannelEnded(writer, self.core.generation, channel, hold, uncommitted)

    def barrier(
        self,
        writer: str,
        checkpoint: int,
        offsets: Mapping[str, int] | None = None,
        size: int = 0,
        *,
        handed: Mapping[str, int] | None = None,
    ) -> BarrierPassed:
        """An ingest side is through with a checkpoint. ``handed``: rows by bucket side."""
        return BarrierPassed(writer, self.core.generation, checkpoint, offsets or {}, size, tallies(handed or {}))

    def flushed(
        self,
        writer: str,
        checkpoint: int,
        files: Sequence[str] = (),
        size: Mapping[int, int] | None = None,
        *,
        received: Mapping[str, int] | None = None,
        written: int | None = None,
        beaten: int = 0,
    ) -> Flushed:
        """A bucket side is. ``received``: rows by ingest side; ``written`` without a number: all that are not beaten."""
        rows = sum((received or {}).values())
        written = rows - beaten if written is None else written
        return Flushed(writer, self.core.generation, checkpoint, files, size or {}, tallies(received or {}), written, beaten)

    def issued(self, checkpoint: int) -> InstantIssued:
        """Instants are named after their checkpoints."""
        return InstantIssued(self.core.generation, checkpoint, f"instant {checkpoint}")


def tallies(rows: Mapping[str, int]) -> dict[str, Tally]:
    """The checksum follows from the rows."""
    return {process: Tally(count, 7 * count) for process, count in rows.items()}


def joined(writer: str) -> WriterJoined:
    """Each has an address of its own."""
    return WriterJoined(writer, f"{writer}:1")


def loaded(writer: str, size: int = 100) -> LoadReported:
    """A heartbeat."""
    return LoadReported(writer, size)


def membership(checkpoint: int, *writers: str, assignment: Sequence[int] | None = None) -> Membership:
    """Of two key groups. Without ``assignment``: one writer has both; a second one got the first of them when it joined."""
    of_old = {0: (), 1: (0, 0), 2: (1, 0)}
    assigned = tuple(assignment) if assignment is not None else of_old[len(writers)]
    return Membership(checkpoint, tuple((writer, f"{writer}:1") for writer in writers), assigned)


def only(kind: type[Kind], instructions: Sequence[Any]) -> list[Kind]:
    """Those of one kind."""
    return [each for each in instructions if isinstance(each, kind)]


def orders(kind: type[Kind], instructions: Sequence[Any]) -> list[tuple[str, Kind]]:
    """Orders of one kind, with whom they go to."""
    return [(each.process, each.order) for each in only(Send, instructions) if isinstance(each.order, kind)]
