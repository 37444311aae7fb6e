"""What a TableCoordinator wants done, in this order: orders to writers, and work for the table's committer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Share:
    """What a checkpoint may add to any one slice: log files, that of its end included, and their bytes. 0: not bounded."""

    files: int = 0
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class Membership:
    """Who takes part in ``checkpoint``: (process, address) each, and per key group an index into them (rule RO3).

    ``intake``: Arrow bytes that each ingest side takes into it before it waits for the next one; 0: not bounded.
    """

    checkpoint: int
    members: Sequence[tuple[str, str]]
    assignment: Sequence[int]
    share: Share = Share()
    intake: int = 0


@dataclass(frozen=True, slots=True)
class Attach:
    """A new generation, or the writer's first checkpoint in this one."""

    membership: Membership


@dataclass(frozen=True, slots=True)
class Barrier:
    """Ends ``checkpoint``; what comes after belongs to ``next``."""

    checkpoint: int
    next: Membership


@dataclass(frozen=True, slots=True)
class Instant:
    """Files of the checkpoint may be written under this instant."""

    checkpoint: int
    instant: str


@dataclass(frozen=True, slots=True)
class Decided:
    """``queryable`` False: the slot is won; True: published."""

    checkpoint: int
    queryable: bool


@dataclass(frozen=True, slots=True)
class Grant:
    """The channel is the writer's, under the name ``hold``."""

    request: int
    channel: str
    incarnation: int
    committed_offset: int
    hold: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an open or a hold ends: name of a wire code, message and fix."""

    code: str
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class OpenRefused:
    """The answer to an open that is not granted."""

    request: int
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class EndChannel:
    """Take no more of this hold; the writer answers ChannelEnded."""

    channel: str
    hold: int
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class Detach:
    """The writer has no part in this table any more. ``refusal``: what its clients are told, if not to look for another one."""

    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Throttle:
    """From now on the writer takes rows of the table at ``rate`` Arrow bytes a second at most (0: no limit), or none at all.

    ``stopped``: each batch is answered with it. ``paused``: clients are not read, and hear nothing of it.
    """

    rate: int = 0
    stopped: Refusal | None = None
    paused: bool = False


@dataclass(frozen=True, slots=True)
class RefusedSlice:
    """Rows of this bucket of the partition are refused."""

    partition: str
    bucket: int
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class RefuseSlices:
    """From now on the writer refuses rows of these slices, and of no others."""

    slices: Sequence[RefusedSlice]


Order: TypeAlias = Attach | Barrier | Instant | Decided | Grant | OpenRefused | EndChannel | Detach | Throttle | RefuseSlices


@dataclass(frozen=True, slots=True)
class Send:
    """An order on one writer's control stream, under ``generation``."""

    process: str
    generation: int
    order: Order


@dataclass(frozen=True, slots=True)
class Evict:
    """Cut the control stream of a writer that did not answer in time; WriterLost follows."""

    process: str
    why: str


@dataclass(frozen=True, slots=True)
class IssueInstant:
    """Begin the checkpoint's transaction and announce it; answered by InstantIssued or InstantRefused. Comes in checkpoint
    order.
    """

    generation: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class Commit:
    """Decide the checkpoint: files under its instant (none was issued when there are no files), and channel records.

    ``channels``: name to (incarnation, committed offset, principal). Answered by SlotWon and Published, or CommitRefused.
    """

    generation: int
    checkpoint: int
    files: Sequence[Any]
    channels: Mapping[str, tuple[int, int, str]]


@dataclass(frozen=True, slots=True)
class DropCheckpoint:
    """Give the checkpoint's transaction up, if one was begun: its instant is dead (rule RO4). No answer."""

    generation: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class WinOffsets:
    """An OFFSETS slot with these records (rule CH4); answered by OffsetsWon or OffsetsRefused."""

    number: int
    channels: Mapping[str, tuple[int, int, str]]


@dataclass(frozen=True, slots=True)
class AskLog:
    """Who owns the table? If it is somebody else, the ownership ends; else there is no answer."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """For logs, metrics and `status`."""

    text: str


@dataclass(frozen=True, slots=True)
class Drained:
    """Everything is decided and no writer has a part in the table: it may be handed over."""


Instruction: TypeAlias = Send | Evict | IssueInstant | Commit | DropCheckpoint | WinOffsets | AskLog | Alarm | Drained
