"""How much of a table's past can still be read after archiving and cleaning, by completion times.

Asks the timeline alone, so that a handle that only reads knows it of any writer's table.
"""

from collections.abc import Callable

from headgate_tables.hudi.definition import Layout
from headgate_tables.hudi.leases import leased_points
from headgate_tables.hudi.timeline.active import Timeline, content_of
from headgate_tables.hudi.timeline.clean_metadata import Cleaned, decode_clean
from headgate_tables.hudi.timeline.history import archived_completions
from headgate_tables.hudi.timeline.history_files import HistoryFolder, completions_of
from headgate_tables.hudi.timeline.instant import Instant
from headgate_tables.storage.store import Store

_TIME_DIGITS = 17


class Past:
    """The past of one table. Reads cleanings and files of the history when a query needs the past, once each."""

    def __init__(self, store: Store, layout: Layout) -> None:
        self._store = store
        self._folder = layout.history_folder
        self._cleaned: dict[str, Cleaned] = {}
        self._newest: dict[str, str] = {}

    def point(self, time: str, timeline: Timeline) -> str:
        """The completion time that ``time`` means: a requested time stands for its instant's, any other for itself."""
        known = timeline.completion(time)
        if known is None and timeline.completed and time < timeline.start:
            known = archived_completions(self._store, self._folder, oldest=time).get(time)
        return known or time.ljust(_TIME_DIGITS, "9")  # a time of 14 digits is a whole second, as in Hudi

    def oldest(self, timeline: Timeline) -> str:
        """From this completion time on, the table can be read at every point; "" when nothing is gone."""
        return max(self.archived(), *(kept_since(self.cleaned(instant), timeline) for instant in _cleanings(timeline)), "")

    def archived(self) -> str:
        """Completion time of the newest archived instant, "" when there is none: the timeline knows no commit up to it.

        Files of the history never change, so each is read once.
        """
        folder = HistoryFolder(self._store, self._folder)
        files = [file.name for file in folder.named(folder.names()).files]
        for name in files:
            if name not in self._newest:
                times = completions_of(folder.read(name, ["instantTime", "completionTime"])).values()
                self._newest[name] = max(times, default="")
        return max((self._newest[name] for name in files), default="")

    def completed_by(self, point: str, timeline: Timeline) -> Callable[[str], bool]:
        """A function: whether an instant, of the timeline or older, had completed at this completion time."""
        archive = archived_completions(self._store, self._folder) if point < self.archived() else {}

        def had_completed(instant: str) -> bool:
            return (timeline.completion(instant) or archive.get(instant, "")) <= point

        return had_completed

    def is_kept(self, point: str, timeline: Timeline) -> bool:
        """Whether a savepoint or a reader's lease keeps the table as of this completion time."""
        return any(self.point(time, timeline) == point for time in timeline.savepoints) or point in leased_points(self._store)

    def cleaned(self, instant: Instant) -> Cleaned:
        """What a completed cleaning removed. Raises CorruptFileError."""
        if instant.time not in self._cleaned:
            self._cleaned[instant.time] = decode_clean(content_of(self._store, instant), instant.path)
        return self._cleaned[instant.time]


def kept_since(cleaned: Cleaned, timeline: Timeline) -> str:
    """The completion time from which on a cleaning removed nothing that is needed; "" when it removed nothing.

    It kept the newest slice before ``earliest`` of each group and all newer ones (Hudi: CleanPlanner), by the instants in
    the names: so everything that was requested up to it must have completed, too. A policy that counts file versions
    has no such instant, and kept what was newest when it was planned.
    """
    if not any(cleaned.files.values()):
        return ""
    last = cleaned.earliest or cleaned.last_completed or cleaned.instant
    return max((write.completion for write in timeline.writes() if write.time <= last), default="")


def _cleanings(timeline: Timeline) -> list[Instant]:
    return [instant for instant in timeline.completed.values() if instant.action == "clean"]
