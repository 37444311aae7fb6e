"""What a table's owner does next for it. Pure, and cheap enough for every commit."""

import enum
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.services.retention.archiving import archiving_is_due

BUNCH = 5
"""Delta commits between two plans that are not urgent, and between two checks of files that a reader or savepoint still needs.
Larger: fewer slots and instants of services; slices overshoot what makes them due by as much, unless they joined the plan before
(``urgency.NEARLY``)."""


class Step(enum.Enum):
    """One step of maintenance."""

    ARCHIVE = "archive instants"
    PLAN = "plan a compaction"
    CLEAN = "clean old file slices"


@dataclass(frozen=True, slots=True)
class MaintenanceState:
    """What the owner knows after a commit without reading any file.

    ``due_slices``: slices that are due for compaction; ``urgent``: one of them cannot wait for others (see ``LiveSlices``).
    ``planned_ago``, ``cleaned_ago``: delta commits since the last PLAN and CLEAN. ``replacing``: completion times of
    compactions and replacecommits that no CLEAN has considered yet, oldest first. ``readable``: the completion time of the
    oldest commit to read as of. ``kept``: files that the last CLEAN kept for readers and savepoints. ``completed``: instants
    on the active timeline; ``archivable``: how many of them nothing holds back.
    """

    due_slices: int = 0
    urgent: bool = False
    planned_ago: int = 0
    replacing: Sequence[str] = ()
    readable: str = ""
    cleaned_ago: int = 0
    kept: int = 0
    completed: int = 0
    archivable: int = 0


def next_steps(state: MaintenanceState, settings: TableSettings) -> list[Step]:
    """Steps in the order of their urgency; when the first turns out to have nothing to do, the next one may run."""
    steps: list[Step] = []
    # First, because it is rare and keeps readers' listings short; a few instants at a time are not worth a file of history.
    batch = min(BUNCH, settings.archive_max - settings.archive_min)
    if settings.archive_automatic and archiving_is_due(state.completed, settings) and state.archivable >= batch:
        steps.append(Step.ARCHIVE)
    if state.due_slices and (state.urgent or state.planned_ago >= BUNCH):
        steps.append(Step.PLAN)
    if settings.clean_automatic and _something_to_clean(state):
        steps.append(Step.CLEAN)
    return steps


def _something_to_clean(state: MaintenanceState) -> bool:
    """Only what a newer slice has replaced can go, once nobody reads as of before; files that are kept are checked sometimes."""
    if bisect_right(state.replacing, state.readable):
        return state.cleaned_ago >= BUNCH
    return state.kept > 0 and state.cleaned_ago >= 10 * BUNCH
