"""The work of a table's committer, a closed union: instructions of the pure cores, and requests from outside of checkpoints."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from headgate_coordinator.core.instructions import AskLog, CommitCheckpoint, DropCheckpoint, IssueInstant, WinOffsets
from headgate_coordinator.core.operations import FinishPlan
from headgate_tables.errors import CorruptFileError, FixCall, MissingFileError, RetryLater
from headgate_tables.face.owner import Table


@dataclass(frozen=True, slots=True)
class RunService:
    """A request from outside of checkpoints. ``call`` gets the table, on the committer's thread, and delivers its own result.

    ``failed`` gets the error that ``call`` raises, on the same thread.
    """

    call: Callable[[Table], None]
    failed: Callable[[BaseException], None]

    def run(self, table: Table) -> None:
        """Runs the call. An error that its caller can correct goes to the caller alone, and so does damage: the next commit meets
        what it needs itself. Any other may concern the table or this process, and is raised as well.
        """
        try:
            self.call(table)
        except (RetryLater, FixCall, CorruptFileError, MissingFileError) as error:
            self.failed(error)
        except BaseException as error:
            self.failed(error)
            raise


@dataclass(frozen=True, slots=True)
class Maintain:
    """One step of maintenance that is due: plan a compaction, clean, archive. New plans are reported."""


Work: TypeAlias = IssueInstant | CommitCheckpoint | DropCheckpoint | WinOffsets | AskLog | RunService | Maintain | FinishPlan


def issues_times(work: Work) -> bool:
    """Whether the work waits while the clock is not believed. It waits so that no checkpoint is aborted; an alarm says why."""
    match work:
        case IssueInstant() | CommitCheckpoint() | WinOffsets() | Maintain() | FinishPlan():
            return True
        case DropCheckpoint() | AskLog() | RunService():
            return False
        case _:
            assert_never(work)


def leaves_something_due(done: Work, *, more: bool) -> bool:
    """Whether maintenance is due after this work. ``more``: whether the step of maintenance that is ``done`` left more to do."""
    match done:
        case Maintain():
            return more
        case CommitCheckpoint() | FinishPlan():
            return True
        case IssueInstant() | DropCheckpoint() | WinOffsets() | AskLog() | RunService():
            return False
        case _:
            assert_never(done)
