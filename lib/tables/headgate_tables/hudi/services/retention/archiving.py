"""Chooses the instants that leave the active timeline (rules TM5, H8; fact HF8). Pure.

To readers that do not read the history (hudi-rs, and ours for files that are older than it) an archived instant completed
at its requested time. So an instant stays while somebody needs its completion time: to cut a slice, to hide a file of a
dead instant, to read the table as of a retained commit, to find the logs of a slice that has no base file yet.
"""

from collections.abc import Callable, Collection, Iterable

from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.timeline.active import Timeline
from headgate_tables.hudi.timeline.instant import NEVER, Instant
from headgate_tables.hudi.view import FileGroup

HEADROOM = 5
"""Archiving begins so many instants below ``hoodie.keep.max.commits``: services add some between two steps of maintenance."""


def archiving_is_due(completed: int, settings: TableSettings) -> bool:
    """Whether an active timeline of so many completed instants would soon be longer than ``hoodie.keep.max.commits``."""
    return completed > settings.archive_max - min(HEADROOM, (settings.archive_max - settings.archive_min) // 2)


def straddles(log_instant: str, base_instant: str) -> bool:
    """Whether a slice needs the completion time of its log: it was requested before the base file's instant and completed after
    it, or the slice has no base file (``base_instant`` "").

    Readers that know no archived completion times (hudi-rs) would put the first below the base file
    (test_a_reader_without_the_history_would_lose_a_straddling_log_of_an_archived_instant). Of a slice without a base file they
    leave the archived logs out as soon as one of an active instant is there, and that may come at any time.
    """
    return not base_instant or log_instant < base_instant


def choose_archivable(
    timeline: Timeline,
    settings: TableSettings,
    *,
    unfinished: Collection[str],
    plans: Collection[str],
    savepoints: Collection[str],
    straddling: Collection[str],
    retained: Instant | None,
    dead: Collection[str],
    replacing: Collection[str] = (),
    forced: bool = False,
) -> list[Instant]:
    """Completed instants of every action that may go, oldest first: when archiving is due, down to ``hoodie.keep.min.commits``.
    ``forced``: also when it is not due.

    The oldest of these instants and all after it stay: ``unfinished`` (reserved or pending), open ``plans``,
    ``savepoints``, ``straddling`` (see ``straddling_instants``), ``dead`` ones that may have left files, ``replacing``:
    replacecommits whose groups still have files. ``retained``: the oldest commit to read as of (see ``earliest_retained``).
    """
    completed = sorted(timeline.completed.values(), key=lambda instant: instant.time)
    if not (forced or archiving_is_due(len(completed), settings)):
        return []
    known = (unfinished, plans, savepoints, straddling, dead, replacing, timeline.pending, timeline.savepoints)
    wall = min((instant for each in known for instant in each), default=NEVER)
    points = [timeline.completion(instant) or instant for instant in {*savepoints, *timeline.savepoints}]
    if retained is not None:
        wall = min(wall, retained.time)
        points.append(retained.completion)
    # An instant requested before such a point and completed after it would seem to have completed before it, to readers as of the
    # point or on the base file of the open plan (test_readers_with_and_without_the_history_find_…).
    points += [*plans, *timeline.pending]
    seen = min(points, default=NEVER)
    chosen: list[Instant] = []
    for instant in completed[: max(0, len(completed) - settings.archive_min)]:
        if instant.time >= wall or instant.completion > seen:
            break
        chosen.append(instant)
    return chosen


def straddling_instants(
    groups: Iterable[FileGroup],
    *,
    retained: Instant | None,
    savepoints: Collection[str],
    completion_of: Callable[[str], str | None],
) -> set[str]:
    """Instants of logs that straddle (see ``straddles``), in slices that are read as of now, as of ``retained`` and later, or as
    of ``savepoints`` (completion times). One pass over all slices.
    """
    since = retained.completion if retained is not None else NEVER
    found: set[str] = set()
    for group in groups:
        for part, replaced in group.newest_first(completion_of):
            for log in part.logs:
                read = replaced == NEVER or replaced > since or any(log.completion <= point < replaced for point in savepoints)
                if read and straddles(log.instant, part.base_instant if part.base else ""):
                    found.add(log.instant)
    return found
