"""What a table's committer does: work that the pure cores ask for, and work that comes from outside of checkpoints. A closed
union.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from headgate_coordinator.core.instructions import AskLog, Commit, DropCheckpoint, IssueInstant, WinOffsets
from headgate_coordinator.core.operations import FinishPlan
from headgate_tables.errors import FixCall, RetryLater
from headgate_tables.face.owner import Table


@dataclass(frozen=True, slots=True)
class RunService:
    """A request from outside of checkpoints. ``call`` gets the table, on the committer's thread, and delivers its own result.

    ``failed`` gets, from that thread, what ``call`` raises.
    """

    call: Callable[[Table], None]
    failed: Callable[[BaseException], None]

    def run(self, table: Table) -> None:
        """What the caller can put right is his alone; anything else says something about the table, or us, and is raised too."""
        try:
            self.call(table)
        except (RetryLater, FixCall) as error:
            self.failed(error)
        except BaseException as error:
            self.failed(error)
            raise


@dataclass(frozen=True, slots=True)
class Maintain:
    """One step of what is due for the table's health: plan a compaction, clean, archive. New plans are reported."""


Work: TypeAlias = IssueInstant | Commit | DropCheckpoint | WinOffsets | AskLog | RunService | Maintain | FinishPlan


def issues_times(work: Work) -> bool:
    """Work that waits while the clock is not believed, so that no checkpoint is given up for it. Operators are told instead."""
    match work:
        case IssueInstant() | Commit() | WinOffsets() | Maintain() | FinishPlan():
            return True
        case DropCheckpoint() | AskLog() | RunService():
            return False
        case _:
            assert_never(work)


def leaves_something_due(done: Work, *, more: bool) -> bool:
    """Whether maintenance is asked for behind it. ``more``: a step of maintenance that is ``done`` left more to do."""
    match done:
        case Maintain():
            return more
        case Commit() | FinishPlan():
            return True
        case IssueInstant() | DropCheckpoint() | WinOffsets() | AskLog() | RunService():
            return False
        case _:
            assert_never(done)
