"""Which writer fails again and again in a table while others do not, and for how long it is excluded (rule RO13). Pure."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from headgate_tables.backoff import Backoff

FAILING_AT: Final = 3
"""Failures of one writer within ``FAILING_SPAN_S`` until it is excluded: some seconds of aborts when each checkpoint fails there.
The first may be a row's, or chance."""

FAILING_SPAN_S: Final = 300.0
"""Seconds for which a failure counts. Longer than the pauses between aborts; a writer that fails less often costs little."""

PAUSES: Final = Backoff(first=60.0, longest=3600.0)
"""Seconds of an exclusion, twice as long each time. Its end costs the aborts of ``FAILING_AT`` failures if the cause is still
there. A writer that held out for ``FAILING_SPAN_S`` behind one begins anew."""


_MOST: Final = 100
"""Failures that are kept of a writer."""


@dataclass(slots=True)
class _Record:
    failures: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST))
    why: str = ""
    exclusions: int = 0
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class Failing:
    """A writer that reached ``FAILING_AT``. ``why``: its last error."""

    process: str
    times: int
    why: str
    is_alone: bool
    """Whether enough others fail much less often: then the cause is in this writer."""


class FailingWriters:
    """Of one ownership, by process id (rule RO8). Failures are those that may be the writer's own, so a store that denies access
    counts against nobody.
    """

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}

    def note_failure(self, process: str, why: str, now: float) -> None:
        """The writer reported an error. It counts also when it comes too late to abort anything: of several the first does."""
        record = self._records.setdefault(process, _Record())
        record.failures.append(now)
        record.why = why

    def find_failing(self, members: Collection[str], excluded: int, now: float) -> Failing | None:
        """Returns the member that fails most often, if that is often enough; None: there is none.

        It is alone if more members than are ``excluded`` already, for failing, fail at most half as often: then at most half of
        the writers are excluded, and never the last one. An error that has its cause in the table, in a row or in the store
        shows at one writer after the other.
        """
        self._forget(now)
        counts = {process: self._count(process) for process in members}
        worst = max(counts, key=lambda process: (counts[process], process), default="")
        if not worst or counts[worst] < FAILING_AT:
            return None
        fine = sum(2 * count <= counts[worst] for count in counts.values())
        return Failing(worst, counts[worst], self._records[worst].why, fine > excluded)

    def note_exclusion(self, process: str, now: float) -> float:
        """Returns when the exclusion of the writer ends."""
        record = self._records[process]
        record.exclusions = record.exclusions + 1 if now - record.until < FAILING_SPAN_S else 1
        record.until = now + PAUSES.after(record.exclusions)
        return record.until

    def forget_exclusions(self) -> None:
        """The cause was not in the writers that were excluded: the next exclusion of each is short again."""
        for record in self._records.values():
            record.exclusions = 0

    def _count(self, process: str) -> int:
        return len(self._records[process].failures) if process in self._records else 0

    def _forget(self, now: float) -> None:
        for process, record in list(self._records.items()):
            while record.failures and record.failures[0] <= now - FAILING_SPAN_S:
                record.failures.popleft()
            if not record.failures and record.until <= now - FAILING_SPAN_S:
                del self._records[process]
