"""Instructions of a TableCoordinator, executed in their order: orders to writers, and work for the table's committer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Share:
    """What a checkpoint may add to any one slice: log files, including the one at its end, and their bytes. 0: not bounded."""

    files: int = 0
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class Membership:
    """Members of ``checkpoint`` as (process, address), and for each key group an index into them (rule RO3).

    ``intake_bytes``: Arrow bytes that each ingest side takes into it before it waits for the next one; 0: not bounded.
    """

    checkpoint: int
    members: Sequence[tuple[str, str]]
    assignment: Sequence[int]
    share: Share = Share()
    intake_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Attach:
    """Attaches a writer: in a new generation, or from its first checkpoint in this one."""

    membership: Membership


@dataclass(frozen=True, slots=True)
class Barrier:
    """Ends ``checkpoint``; rows after the barrier belong to ``next``."""

    checkpoint: int
    next: Membership


@dataclass(frozen=True, slots=True)
class UseInstant:
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
    """Grants the writer the channel, under the number ``hold``."""

    request: int
    channel: str
    incarnation: int
    committed_offset: int
    hold: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an open is refused or a hold ends: name of a wire code, message and fix."""

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
    """Ends a hold: the writer takes no more rows of it and answers ChannelEnded."""

    channel: str
    hold: int
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class Detach:
    """The writer loses the table. ``refusal``: for its clients; None: they look for another writer."""

    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Throttle:
    """From now on the writer takes at most ``rate`` Arrow bytes of the table a second (0: no limit), or none at all.

    ``stopped``: the answer to each batch. ``paused``: clients are not read, and get no answer.
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
    """From now on the writer refuses rows of these slices and of no others."""

    slices: Sequence[RefusedSlice]


Order: TypeAlias = Attach | Barrier | UseInstant | Decided | Grant | OpenRefused | EndChannel | Detach | Throttle | RefuseSlices


@dataclass(frozen=True, slots=True)
class Send:
    """An order on one writer's control stream, under ``generation``."""

    process: str
    generation: int
    order: Order


@dataclass(frozen=True, slots=True)
class Evict:
    """Cuts the control stream of a writer that did not answer in time; WriterLost follows."""

    process: str
    why: str


@dataclass(frozen=True, slots=True)
class IssueInstant:
    """Begins the checkpoint's transaction and announces it, in checkpoint order; answered by InstantIssued or InstantRefused."""

    generation: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class CommitCheckpoint:
    """Decides the checkpoint: files under its instant (none was issued when there are no files), and channel records.

    ``channels``: name to (incarnation, committed offset, principal). Answered by SlotWon and Published, or CommitRefused.
    """

    generation: int
    checkpoint: int
    files: Sequence[Any]
    channels: Mapping[str, tuple[int, int, str]]


@dataclass(frozen=True, slots=True)
class DropCheckpoint:
    """Rolls back the checkpoint's transaction, if one was begun: its instant is dead (rule RO4). No answer."""

    generation: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class WinOffsets:
    """Wins an OFFSETS slot with these records (rule CH4), and without those to ``forget`` (rule CH5); answered by OffsetsWon or
    OffsetsRefused.
    """

    number: int
    channels: Mapping[str, tuple[int, int, str]]
    forget: Sequence[str] = ()


MOST_EPOCHS = 1_000_000
"""How far a writer's word lifts the epoch at once. Lower: a table whose copy lies further back is fenced several times. Higher: a
false writer needs fewer words to use up all epochs, of which messages hold 2**53.
"""


@dataclass(frozen=True, slots=True)
class AskLog:
    """Asks the commit log for the table's owner: the ownership ends if it is another coordinator. ``followed``: an epoch above
    the owner's own that a writer has followed; the table is fenced again above it if it is ours (rule R6). 0: there is none.
    """

    followed: int = 0


@dataclass(frozen=True, slots=True)
class Alarm:
    """A sentence for operators, in logs and metrics."""

    text: str


@dataclass(frozen=True, slots=True)
class Drained:
    """Everything is decided and no writer is attached: the table may be handed over."""


Instruction: TypeAlias = Send | Evict | IssueInstant | CommitCheckpoint | DropCheckpoint | WinOffsets | AskLog | Alarm | Drained
