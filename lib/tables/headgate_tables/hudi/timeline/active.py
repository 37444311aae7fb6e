"""The active timeline, listed: which instants are completed, which are pending, and where it starts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER, WRITE_ACTIONS, Instant, State, parse_instant
from headgate_tables.storage.store import Store


@dataclass(slots=True)
class Timeline:
    """``completed`` maps an instant time to its completed instant, oldest first; ``pending`` the rest likewise.

    A savepoint has the time of the commit that it saves; it is in ``savepoints`` instead.
    """

    completed: dict[str, Instant] = field(default_factory=dict)
    pending: dict[str, Instant] = field(default_factory=dict)
    savepoints: dict[str, Instant] = field(default_factory=dict)

    @property
    def start(self) -> str:
        """The first instant; any older one was archived and so is completed (Hudi: containsOrBeforeTimelineStarts).

        "" without instants: nothing can have been archived then, and a file that exists was never committed.
        """
        return min([*self.completed, *self.pending], default="")

    def completion(self, time: str) -> str | None:
        """When the instant completed; None when it is not completed on the active timeline."""
        instant = self.completed.get(time)
        return instant.completion if instant else None

    def writes(self) -> list[Instant]:
        """Completed instants that added data files, by completion time."""
        found = [instant for instant in self.completed.values() if instant.action in WRITE_ACTIONS]
        return sorted(found, key=lambda instant: instant.completion)

    def drop_until(self, time: str) -> None:
        """Removes instants up to this one, which were archived. What the view knows of their files stays."""
        for each in (self.completed, self.pending):
            for known in [known for known in each if known <= time]:
                del each[known]

    def drop(self, unwanted: Callable[[Instant], bool]) -> None:
        """Removes completed instants and savepoints for which ``unwanted`` is true."""
        for each in (self.completed, self.savepoints):
            for time in [time for time, instant in each.items() if unwanted(instant)]:
                del each[time]

    def add(self, instants: Iterable[Instant]) -> None:
        """Adds files of the timeline, in any order."""
        for instant in instants:
            if instant.action == "savepoint":
                self.savepoints[instant.time] = instant
            elif instant.state is State.COMPLETED:
                self.completed[instant.time] = instant
                self.pending.pop(instant.time, None)
            elif instant.time not in self.completed and (instant.time not in self.pending or instant.state is State.INFLIGHT):
                self.pending[instant.time] = instant


def list_instants(store: Store, *, after: str | None = None) -> list[Instant]:
    """The timeline's files (those with names > ``after``), sorted by name; stray files are skipped."""
    names = sorted(store.list_folder(TIMELINE_FOLDER, after=after).files)
    parsed = (parse_instant(name) for name in names)
    return [instant for instant in parsed if instant is not None]


def content_of(store: Store, instant: Instant) -> bytes:
    """What an instant of a listing holds. Raises CorruptFileError when it is gone since, or is no file."""
    try:
        return store.get(instant.path).to_pybytes()
    except FileNotFoundError as error:
        raise CorruptFileError(
            f"{instant.path} vanished while it was read",
            fix="Read again; an archiver may have moved it. If it stays so, restore it from a copy of the table.",
        ) from error


def read_timeline(store: Store) -> Timeline:
    """The whole active timeline."""
    timeline = Timeline()
    timeline.add(list_instants(store))
    return timeline
