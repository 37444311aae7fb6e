"""Events of a TableCoordinator. A message that carries a generation counts only in that generation (rule RO2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from headgate_coordinator.core.instructions import Refusal, RefusedSlice
from headgate_coordinator.core.tally import Tally


@dataclass(frozen=True, slots=True)
class WriterJoined:
    """A writer opened its control stream."""

    process: str
    address: str


@dataclass(frozen=True, slots=True)
class WritersFound:
    """Writers whose control streams were open before the ownership began: all are members of its first checkpoint."""

    writers: tuple[WriterJoined, ...]


@dataclass(frozen=True, slots=True)
class WriterLost:
    """A control stream ended or fell silent (rule RO8)."""

    process: str
    why: str


@dataclass(frozen=True, slots=True)
class WriterLeaving:
    """The writer drains: it takes no part in checkpoints after the next border."""

    process: str


@dataclass(frozen=True, slots=True)
class LoadReported:
    """Arrow bytes that this writer took from clients and that are not committed yet."""

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
    """``offsets``: channels whose accepted offset grew in the checkpoint; ``bytes``: Arrow bytes taken in it.

    ``handed``: what it handed over, by process of the bucket side.
    """

    process: str
    generation: int
    checkpoint: int
    offsets: Mapping[str, int]
    bytes: int
    handed: Mapping[str, Tally] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Flushed:
    """``files``: write statuses, opaque here; ``key_group_bytes``: Arrow bytes of the checkpoint by key group.

    ``received``: what came, by process of the ingest side. Of these rows ``written`` are in the files, deletes included, and
    ``beaten`` are in none, because another row of their record is.
    """

    process: str
    generation: int
    checkpoint: int
    files: Sequence[Any]
    key_group_bytes: Mapping[int, int]
    received: Mapping[str, Tally] = field(default_factory=dict)
    written: int = 0
    beaten: int = 0


@dataclass(frozen=True, slots=True)
class Progressed:
    """A writer has handed rows of the checkpoint on, or written some: the checkpoint is slow, and not stuck."""

    process: str
    generation: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class WaitsForRoom:
    """An ingest side cannot pass the checkpoint's barrier before another bucket side has room for its rows."""

    process: str
    generation: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class CheckpointFull:
    """A bucket side can take little more of it: a slice has used its share, or memory is full and may not be flushed."""

    process: str
    generation: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class Broken:
    """The checkpoint cannot complete at this writer. ``own``: the cause may be this process (rule RO13)."""

    process: str
    generation: int
    why: str
    own: bool = False


@dataclass(frozen=True, slots=True)
class NewerOwnerSeen:
    """The writer follows an owner of that epoch."""

    process: str
    epoch: int


@dataclass(frozen=True, slots=True)
class LeaseRecreated:
    """Redis had lost this coordinator's lease: another one may have had it in between, and have won epochs."""


@dataclass(frozen=True, slots=True)
class OpenRequested:
    """A client opens a channel at this writer; ``incarnation`` 0 = a new producer.

    ``channels``: how many of the table the principal may have; 0: any number.
    """

    process: str
    generation: int
    request: int
    channel: str
    incarnation: int
    principal: str
    channels: int = 0


@dataclass(frozen=True, slots=True)
class ChannelEnded:
    """The writer returned its hold; ``uncommitted``: rows of the channel are in no decided checkpoint."""

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
    """From the committer: nothing was decided, for certain; the checkpoint's files and its transaction are as they were."""

    generation: int
    checkpoint: int
    why: str


@dataclass(frozen=True, slots=True)
class FilesRefused:
    """From the committer: nothing was decided, for certain, as some files are not as reported. ``why``: by their positions."""

    generation: int
    checkpoint: int
    why: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class OffsetsWon:
    """From the committer: the channel records of that WinOffsets are durable."""

    number: int


@dataclass(frozen=True, slots=True)
class OffsetsRefused:
    """From the committer: the channel records are not durable, for certain."""

    number: int
    why: str


@dataclass(frozen=True, slots=True)
class SliceFigures:
    """From the committer, after commits and compactions: the most log files and log bytes of any slice, and their limits.

    ``counted`` False: slices were not counted since this ownership began; files and bytes mean nothing. ``refused``: slices
    whose rows are refused. ``stuck``: how many cannot be compacted or are set aside; these are not among the counted ones.
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
    """Number of compactors that are connected to this coordinator now."""

    count: int


@dataclass(frozen=True, slots=True)
class Tick:
    """A deadline named by ``TableCoordinator.deadline`` has come."""


@dataclass(frozen=True, slots=True)
class EndAsked:
    """An operator's request needs the table alone: aborts what is not sent, ends every channel, then the ownership (CH8)."""

    refusal: Refusal


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """This coordinator shuts down: it commits what is there, begins nothing, then hands the table over."""


OfWriter: TypeAlias = WriterJoined | WritersFound | WriterLost | WriterLeaving | LoadReported
"""About a writer's control stream."""
OfFlush: TypeAlias = BarrierPassed | Flushed | Progressed | WaitsForRoom
"""From a member of the checkpoint that flushes."""
OfGeneration: TypeAlias = InstantAsked | CheckpointAsked | CheckpointFull | OfFlush | Broken | OpenRequested | ChannelEnded
"""From a writer that takes part in the generation that it names."""
OfCheckpoint: TypeAlias = InstantIssued | InstantRefused | SlotWon | Published | CommitRefused | FilesRefused
"""From the committer, about one checkpoint."""
OfRecords: TypeAlias = OffsetsWon | OffsetsRefused
"""From the committer, about channel records."""
OfOwnership: TypeAlias = NewerOwnerSeen | LeaseRecreated
"""Another coordinator may own the table by now."""
OfSlices: TypeAlias = SliceFigures | CompactorsCounted
"""How full file slices are, and how many compactors make room."""

Event: TypeAlias = OfWriter | OfGeneration | OfCheckpoint | OfRecords | OfOwnership | OfSlices | Tick | EndAsked | DrainAsked
