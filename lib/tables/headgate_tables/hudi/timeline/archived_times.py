"""When archived instants completed, as far as somebody asks: files of old instants are read beside files of new ones."""

from collections.abc import Callable, Mapping
from typing import Final

from headgate_tables.hudi.timeline.instant import NEVER

MOST_KNOWN: Final = 100_000
"""Instants in memory, of about 200 bytes each. Lower: the history is read again more often, from the oldest instant that is asked
for on."""


class ArchivedTimes:
    """Reads the history when an older instant is asked for than before, and no sooner."""

    def __init__(self, read: Callable[[str], Mapping[str, str]]) -> None:
        """``read``: completion times of all archived instants from a given one on, see ``archived_completions``."""
        self._read = read
        self._known: dict[str, str] = {}
        self._from = NEVER

    def completion(self, instant: str) -> str:
        """Of an archived instant; its own time if the history does not hold it."""
        if instant < self._from:
            self._known, self._from = dict(self._read(instant)), instant
        return self._known.get(instant, instant)

    def note(self, gone: Mapping[str, str]) -> None:
        """Instants that have just been archived, with their completion times: all that the timeline began with."""
        if len(self._known) + len(gone) > MOST_KNOWN:
            self.forget()
        elif gone:
            self._known.update(gone)
            self._from = min(self._from, *gone)

    def forget(self) -> None:
        """Others may have archived instants since."""
        self._known, self._from = {}, NEVER
