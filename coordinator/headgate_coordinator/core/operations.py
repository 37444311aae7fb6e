"""Events and instructions of the core of a table's compactions, and what it reports of plans and operations.

A process is a compactor's. An attempt is named by its plan's instant, its operation's index and its number: late or repeated
messages, and those of attempts that were dropped, change nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from headgate_coordinator.core.instructions import Alarm
from headgate_tables.face.operation import Operation, OperationResult


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at one operation. ``number`` counts the tries at it under this ownership, from 1."""

    instant: str
    operation: int
    number: int


@dataclass(frozen=True, slots=True)
class PlanOpened:
    """From the committer: the plan stands in a slot. ``attempts``: how often an operation may fail."""

    instant: str
    operations: Sequence[Operation]
    attempts: int


@dataclass(frozen=True, slots=True)
class PlanClosed:
    """From the committer: the plan is done or, with ``done`` False, was cancelled."""

    instant: str
    done: bool


@dataclass(frozen=True, slots=True)
class FinishRefused:
    """From the committer: the plan is not done, for certain, and the same may succeed later."""

    instant: str
    why: str


@dataclass(frozen=True, slots=True)
class CapacityOffered:
    """A compactor has capacity for one more operation. Answered by Run, or not at all when none waits."""

    process: str


@dataclass(frozen=True, slots=True)
class CompactorLost:
    """A compactor's stream ended or fell silent: its attempts are lost."""

    process: str


@dataclass(frozen=True, slots=True)
class AttemptProgressed:
    """Rows written and input bytes read so far. ``batches`` grows with all work, also before the first row."""

    process: str
    attempt: Attempt
    rows: int
    bytes: int
    batches: int = 0


@dataclass(frozen=True, slots=True)
class AttemptFinished:
    """The output is in place and durable."""

    process: str
    attempt: Attempt
    compacted: OperationResult


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """``transient``: the store's fault, not the operation's. ``damage``: an input is damaged, so another try cannot help."""

    process: str
    attempt: Attempt
    why: str
    transient: bool
    damage: bool = False


@dataclass(frozen=True, slots=True)
class AttemptReturned:
    """The attempt did not begin, or was dropped in a drain."""

    process: str
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Tick:
    """A deadline named by ``Compactions.deadline`` has come."""


CompactionEvent: TypeAlias = (
    PlanOpened
    | PlanClosed
    | FinishRefused
    | CapacityOffered
    | CompactorLost
    | AttemptProgressed
    | AttemptFinished
    | AttemptFailed
    | AttemptReturned
    | Tick
)


@dataclass(frozen=True, slots=True)
class Run:
    """Hands the operation to this compactor."""

    process: str
    attempt: Attempt
    operation: Operation


@dataclass(frozen=True, slots=True)
class Drop:
    """Ends an attempt that is no longer needed."""

    process: str
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class FinishPlan:
    """Wins the slot that ends the plan; answered by PlanClosed or FinishRefused. ``dropped``: the reason for each operation."""

    instant: str
    finished: Sequence[OperationResult]
    dropped: Mapping[Operation, str]


CompactionInstruction: TypeAlias = Run | Drop | FinishPlan | Alarm


@dataclass(slots=True)
class RunningAttempt:
    """An attempt that a compactor works on. Times are monotonic seconds."""

    process: str
    attempt: Attempt
    operation: Operation
    since: float
    grown_at: float
    rows: int = 0
    bytes: int = 0
    batches: int = 0


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """Counts of operations; ``bytes``: of all inputs; ``bytes_done``: of those read so far."""

    operations: int
    finished: int
    dropped: int
    running: int
    bytes: int
    bytes_done: int


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """How a plan has ended: done, with or without some of its operations, or cancelled."""

    finished: int
    dropped: Sequence[Operation]
    cancelled: bool


@dataclass(frozen=True, slots=True)
class OperationCounts:
    """Counts of this ownership: operations finished and dropped, attempts failed and lost."""

    finished: int = 0
    dropped: int = 0
    failed: int = 0
    lost: int = 0
