"""What the owner of a table does for it next. Pure, and cheap enough to be asked after every commit."""

import enum
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.services.retention.archiving import archiving_is_due

BUNCH = 5
"""Delta commits between two plans that are not urgent, and between two looks for what is still held by a reader or savepoint.
Larger: fewer slots and instants of services, slices overshoot their number of logs by as much."""


class Due(enum.Enum):
    """One step of maintenance."""

    ARCHIVE = "archive instants"
    PLAN = "plan a compaction"
    CLEAN = "clean old file slices"


@dataclass(frozen=True, slots=True)
class Figures:
    """What the owner knows after a commit without looking at any file.

    ``due``: slices that are due for compaction; ``urgent``: one of them does not wait for others (see ``LiveSlices``).
    ``planned_ago``, ``cleaned_ago``: delta commits since the last PLAN and CLEAN. ``replacing``: completion times of
    compactions and replacecommits that no CLEAN has looked at yet, oldest first. ``readable``: the completion time of the
    oldest commit to read as of. ``held``: files that the last CLEAN left to readers and savepoints. ``completed``: instants
    on the active timeline; ``archivable``: how many of them nothing holds back.
    """

    due: int = 0
    urgent: bool = False
    planned_ago: int = 0
    replacing: Sequence[str] = ()
    readable: str = ""
    cleaned_ago: int = 0
    held: int = 0
    completed: int = 0
    archivable: int = 0


def due(figures: Figures, settings: TableSettings) -> list[Due]:
    """In the order of their urgency; when the first turns out to have nothing to do, the next one may go."""
    steps: list[Due] = []
    # First, because it is seldom and keeps readers' listings short; a few instants at a time are not worth a file of history.
    batch = min(BUNCH, settings.archive_max - settings.archive_min)
    if settings.archive_automatic and archiving_is_due(figures.completed, settings) and figures.archivable >= batch:
        steps.append(Due.ARCHIVE)
    if figures.due and (figures.urgent or figures.planned_ago >= BUNCH):
        steps.append(Due.PLAN)
    if settings.clean_automatic and _something_to_clean(figures):
        steps.append(Due.CLEAN)
    return steps


def _something_to_clean(figures: Figures) -> bool:
    """Only what a newer slice has replaced can go, once nobody reads as of before; what is held is looked at now and then."""
    if bisect_right(figures.replacing, figures.readable):
        return figures.cleaned_ago >= BUNCH
    return figures.held > 0 and figures.cleaned_ago >= 10 * BUNCH
