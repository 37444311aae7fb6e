"""What a table was at every point of its past, told by a list of what happened to it; apart from the library.

Rules: those of ``support.model``; a compaction forgets deletes, so that an older row that comes later stays. A range of
commits is a table of its own: the rows that its newest compaction took over from commits of the range, then what its later
commits say.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from support.model import Change, Identity, Row, rank_of

Standing = dict[Identity, tuple[int, Row | None, str]]
"""By record: rank, row (None: deleted), instant."""


@dataclass(frozen=True)
class Event:
    """A completed instant: what its transaction changed, or None for a compaction of all logs."""

    instant: str
    completion: str
    changes: Sequence[Change] | None


@dataclass(frozen=True)
class ToldHistory:
    """``events`` in their order of completion."""

    key: Sequence[str]
    ordering: str | None
    events: list[Event]

    def as_of(self, completion: str) -> list[Row]:
        """What a snapshot showed then."""
        return shown(self._after(event for event in self.events if event.completion <= completion))

    def completed_until(self, time: str) -> set[str]:
        """Instants that had completed."""
        return {event.instant for event in self.events if event.completion <= time}

    def requested_until(self, time: str) -> set[str]:
        """Instants up to this one. One that is reserved early may complete after a younger one, a compaction's say."""
        return {event.instant for event in self.events if event.instant <= time}

    def changed(self, since: str, until: str) -> list[Row]:
        """Rows of commits with a completion in (since, until]."""
        known = [event for event in self.events if event.completion <= until]
        inside = {event.instant for event in known if event.completion > since}
        compactions = [n for n, event in enumerate(known) if event.changes is None and event.instant in inside]
        first = compactions[-1] + 1 if compactions else 0
        base = {key: entry for key, entry in self._after(known[:first]).items() if entry[2] in inside}
        return shown(self._after([event for event in known[first:] if event.instant in inside], base))

    def _after(self, events: Iterable[Event], standing: Standing | None = None) -> Standing:
        found = dict(standing or {})
        for event in events:
            if event.changes is None:
                found = {key: entry for key, entry in found.items() if entry[1] is not None}
            for change in event.changes or ():
                for row in change.rows:
                    identity = tuple(row[name] for name in self.key)
                    rank = rank_of(row[self.ordering]) if self.ordering else 0
                    if identity not in found or rank >= found[identity][0]:
                        found[identity] = (rank, row if change.kind == "upsert" else None, event.instant)
        return found


def shown(standing: Standing) -> list[Row]:
    """Live rows with the instant of the commit that wrote each."""
    return [row | {"_hoodie_commit_time": instant} for _, row, instant in standing.values() if row is not None]
