"""Which file slices a query reads: the table as it is, its base files alone, as it was, or what commits changed.

Hudi: HoodieFileIndex, MergeOnReadIncrementalRelationV2. Points in time
are completion times. A range takes the files that its commits name, including those of compactions and clusterings, as a table
of its own, and shows the rows of its commits: a row that lost only to an older row outside is shown, as in Hudi 1.2.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from headgate_tables.errors import OptionError, RangeGoneError
from headgate_tables.face.reader import Mode
from headgate_tables.hudi.past import Past
from headgate_tables.hudi.snapshot import Snapshot, Snapshots
from headgate_tables.hudi.timeline.active import Timeline
from headgate_tables.hudi.timeline.instant import Instant
from headgate_tables.hudi.view import FileSlice, FileSystemView

MODES: Sequence[Mode] = ("snapshot", "read_optimized")


@dataclass(frozen=True, slots=True)
class Selection:
    """What a scan reads. ``unknown``: files that may belong to it, see ``FileSystemView.unknown``. ``as_of``: the completion time
    up to which commits count. ``commits``: the instants whose rows are shown; None: all.
    """

    snapshot: Snapshot
    slices: Sequence[FileSlice]
    unknown: Sequence[tuple[str, str]]
    as_of: str
    commits: Sequence[str] | None = None


def select(snapshots: Snapshots, mode: Mode, as_of: str | None, since: str | None) -> Selection:
    """``as_of``, ``since``: 14 or 17 digits. Raises OptionError, RangeGoneError, CorruptFileError."""
    _check(mode, since)
    snapshot = snapshots.current()
    if since is not None:
        return _changes(snapshots, newest(snapshot.view.timeline), as_of, since)
    timeline, past = snapshot.view.timeline, snapshots.past
    if as_of is None:
        slices = _shown(snapshot.view.latest_slices(), mode)
        return Selection(snapshot, slices, snapshot.view.unknown(), newest(timeline))
    point = past.point(as_of, timeline)
    _check_point(past, timeline, as_of, point)
    counts = past.completed_by(point, timeline)
    slices = _shown(snapshot.view.latest_slices(counts), mode)
    return Selection(snapshot, slices, snapshot.view.unknown(counts), newest(timeline, point))


def newest(timeline: Timeline, until: str | None = None) -> str:
    """Completion time of the newest write (up to ``until``), "" before the first."""
    times = (instant.completion for instant in timeline.writes())
    return max((time for time in times if until is None or time <= until), default="")


def _shown(slices: Iterable[FileSlice], mode: Mode) -> list[FileSlice]:
    if mode == "snapshot":
        return list(slices)
    return [replace(part, logs=()) for part in slices if part.base is not None]


def _changes(snapshots: Snapshots, seen: str, as_of: str | None, since: str) -> Selection:
    """``seen``: the newest completion of an earlier listing. One listing may miss a commit and show the next, as files come while
    it runs; the second has all that completed before the newest one that the first saw, so the next query misses none.
    """
    snapshot = snapshots.current()
    timeline, past = snapshot.view.timeline, snapshots.past
    begin = past.point(since, timeline)
    end = past.point(as_of, timeline) if as_of is not None else seen
    if as_of is not None and begin > end:
        raise OptionError(f"since={since!r} is later than as_of={as_of!r}", fix="Swap them: rows of (since, as_of] are read.")
    end = min(end, seen)
    if past.archived() > begin:
        oldest = past.oldest(timeline)
        raise _gone(f"the commits after {since} were archived", f"since={oldest!r}", oldest)
    commits = [instant for instant in timeline.writes() if begin < instant.completion <= end]
    replaced = snapshot.view.replaced(past.completed_by(end, timeline))
    view = _view_of(snapshots, timeline, replaced, commits)
    slices = list(view.latest_slices())
    missing = next((part.path(name) for part in slices for name in part.names if not _is_there(snapshot.view, part, name)), None)
    if missing is not None:
        oldest = past.oldest(timeline)
        raise _gone(f"rows of the commits after {since} were cleaned away ({missing} is not there)", f"since={oldest!r}", oldest)
    return Selection(snapshot, slices, view.unknown(), max(begin, end), [instant.time for instant in commits])


def _view_of(
    snapshots: Snapshots, timeline: Timeline, replaced: Mapping[tuple[str, str], str], commits: Sequence[Instant]
) -> FileSystemView:
    """The view of a table with the files of these commits only."""
    view = FileSystemView(timeline, replaced, lambda _: {})
    for instant in commits:
        for partition, files in snapshots.metadata(instant).files.items():
            view.add_files(partition, {file.name: file.size for file in files})
    return view


def _is_there(view: FileSystemView, part: FileSlice, name: str) -> bool:
    return view.holds(part.partition, part.file_id, name)


def _check_point(past: Past, timeline: Timeline, as_of: str, point: str) -> None:
    if point >= newest(timeline) and timeline.completed:
        return  # nothing of the past is asked for
    oldest = past.oldest(timeline)
    if point < oldest and not past.is_kept(point, timeline):
        saved = ", ".join(sorted(timeline.savepoints))
        raise _gone(f"the table as of {as_of} is gone", f"as_of={oldest!r}", oldest, saved)


def _gone(what: str, pass_: str, oldest: str, saved: str = "") -> RangeGoneError:
    also = f", or a saved instant: {saved}" if saved else ""
    return RangeGoneError(
        f"{what}; the oldest point that can be read is {oldest}",
        fix=f"Pass {pass_} or later{also}. The cleaning and archiving settings say how long the past is kept.",
    )


def _check(mode: Mode, since: str | None) -> None:
    if mode not in MODES:
        raise OptionError(f"mode={mode!r}", fix=f"Choose one of {', '.join(MODES)}.")
    if since is not None and mode != "snapshot":
        raise OptionError(f"mode={mode!r} with since={since!r}", fix="Changes are in log files too: leave one of them out.")
