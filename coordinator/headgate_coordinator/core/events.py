"""What a TableCoordinator is told. A message that carries a generation counts only in that one (rule RO2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from headgate_coordinator.core.instructions import Refusal, RefusedSlice


@dataclass(frozen=True, slots=True)
class WriterJoined:
    """A control stream said hello."""

    process: str
    address: str


@dataclass(frozen=True, slots=True)
class WritersFound:
    """Those whose control streams stood already when the ownership began: all of them have a part in its first checkpoint."""

    writers: tuple[WriterJoined, ...]


@dataclass(frozen=True, slots=True)
class WriterLost:
    """Its control stream ended or fell silent (rule RO8)."""

    process: str
    why: str


@dataclass(frozen=True, slots=True)
class WriterLeaving:
    """It drains: it wants to have no part in the checkpoints after the next border."""

    process: str


@dataclass(frozen=True, slots=True)
class LoadReported:
    """Arrow bytes that this process took from clients and that are not committed yet."""

    process: str
    uncommitted_bytes: int


@dataclass(frozen=True, slots=True)
class InstantAsked:
    """A bucket side has rows of the checkpoint."""

    process: str
    generation: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class CheckpointAsked:
    """A client's flush, or half of a limit is used."""

    process: str
    generation: int


@dataclass(frozen=True, slots=True)
class BarrierPassed:
    """``offsets``: channels whose accepted offset grew in the checkpoint; ``bytes``: Arrow bytes taken in it."""

    process: str
    generation: int
    checkpoint: int
    offsets: Mapping[str, int]
    bytes: int


@dataclass(frozen=True, slots=True)
class Flushed:
    """``files``: write statuses, opaque here; ``key_group_bytes``: Arrow bytes of the checkpoint by key group."""

    process: str
    generation: int
    checkpoint: int
    files: Sequence[Any]
    key_group_bytes: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Progressed:
    """A writer has handed rows of the checkpoint on, or written some: the checkpoint is slow, and not stuck."""

    process: str
    generation: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class CheckpointFull:
    """A bucket side must not get much more of it: a slice has its share, or memory is full and may not be flushed."""

    process: str
    generation: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class Broken:
    """The checkpoint cannot complete at this writer."""

    process: str
    generation: int
    why: str


@dataclass(frozen=True, slots=True)
class NewerOwnerSeen:
    """The writer obeys an owner of that epoch."""

    process: str
    epoch: int


@dataclass(frozen=True, slots=True)
class LeaseRecreated:
    """Redis had lost our lease: somebody else may have had it in between, and have won epochs with it."""


@dataclass(frozen=True, slots=True)
class OpenRequested:
    """A client opens a channel at this writer; ``incarnation`` 0 = a new producer."""

    process: str
    generation: int
    request: int
    channel: str
    incarnation: int
    principal: str


@dataclass(frozen=True, slots=True)
class ChannelEnded:
    """The writer holds the channel no more; ``uncommitted``: rows of it are in no decided checkpoint."""

    process: str
    generation: int
    channel: str
    hold: int
    uncommitted: bool


@dataclass(frozen=True, slots=True)
class InstantIssued:
    """From the committer: the checkpoint's instant stands on the timeline as requested and inflight."""

    generation: int
    checkpoint: int
    instant: str


@dataclass(frozen=True, slots=True)
class SlotWon:
    """From the committer: the checkpoint is decided."""

    generation: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class Published:
    """From the committer: readers see the checkpoint."""

    generation: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class InstantRefused:
    """From the committer: the checkpoint's transaction could not be begun or announced. Nothing of it was written."""

    generation: int
    checkpoint: int
    why: str


@dataclass(frozen=True, slots=True)
class CommitRefused:
    """From the committer: for certain nothing was decided; the checkpoint's files and its transaction are as they were."""

    generation: int
    checkpoint: int
    why: str


@dataclass(frozen=True, slots=True)
class OffsetsWon:
    """From the committer: the channel records of that WinOffsets are durable."""

    number: int


@dataclass(frozen=True, slots=True)
class OffsetsRefused:
    """From the committer: for certain they are not."""

    number: int
    why: str


@dataclass(frozen=True, slots=True)
class SliceFigures:
    """From the committer, after commits and compactions: the most log files and log bytes of any slice, and their limits.

    ``counted`` False: nobody has looked at the slices since this ownership began; files and bytes say nothing. ``refused``:
    slices whose rows are refused. ``stuck``: how many cannot be compacted or are set aside; they are not among those counted.
    """

    files: int
    bytes: int
    max_files: int
    max_bytes: int
    counted: bool = True
    refused: tuple[RefusedSlice, ...] = ()
    stuck: int = 0


@dataclass(frozen=True, slots=True)
class CompactorsCounted:
    """So many compactors are connected here now."""

    count: int


@dataclass(frozen=True, slots=True)
class Tick:
    """A deadline named by ``TableCoordinator.deadline`` has come."""


@dataclass(frozen=True, slots=True)
class EndAsked:
    """Somebody needs the table for himself: what is not sent is given up, every channel ends, then the ownership does (CH8)."""

    refusal: Refusal


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """This coordinator shuts down: commit what is there, begin nothing, then hand the table over."""


OfWriter: TypeAlias = WriterJoined | WritersFound | WriterLost | WriterLeaving | LoadReported
"""Of a control stream, whatever it says of this table."""
OfGeneration: TypeAlias = (
    InstantAsked | CheckpointAsked | BarrierPassed | Flushed | Progressed | CheckpointFull | Broken | OpenRequested | ChannelEnded
)
"""From a writer that has a part in the generation that it names."""
OfCheckpoint: TypeAlias = InstantIssued | InstantRefused | SlotWon | Published | CommitRefused
"""From the committer, about one checkpoint."""
OfRecords: TypeAlias = OffsetsWon | OffsetsRefused
"""From the committer, about channel records."""
OfOwnership: TypeAlias = NewerOwnerSeen | LeaseRecreated
"""The table may be somebody else's by now."""
OfSlices: TypeAlias = SliceFigures | CompactorsCounted
"""How full file slices are, and who makes room."""

Event: TypeAlias = OfWriter | OfGeneration | OfCheckpoint | OfRecords | OfOwnership | OfSlices | Tick | EndAsked | DrainAsked
