"""TableCoordinators that exclude writers for too few failures of theirs, or although others fail as well (rule RO13)."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from headgate_coordinator.core.failing_writers import Failing, FailingWriters
from headgate_coordinator.core.table_coordinator import TableCoordinator


class ExcludesForOneFailure(TableCoordinator):
    """RO13: a writer that failed once has no part in the table for a while."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        note = self._state.failing.note_failure

        def note_three(process: str, why: str, now: float) -> None:
            for _ in range(3):
                note(process, why, now)

        self._state.failing.note_failure = note_three  # type: ignore[method-assign]


class _BlamesAll(FailingWriters):
    def find_failing(self, members: Collection[str], excluded: int, now: float) -> Failing | None:
        found = super().find_failing(members, excluded, now)
        return replace(found, is_alone=True) if found else None


class ExcludesAllThatFail(TableCoordinator):
    """RO13: that the others fail as well keeps no writer from being excluded."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._state.failing = _BlamesAll()
