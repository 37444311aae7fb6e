"""What keeps a table from its work: since when, how often, and what was said last. For `status`."""

from datetime import UTC, datetime

from headgate_tables.errors import StoreDeniedError, StoreFullError, StoreUnavailableError, TableGoneError, TablesError

_WHAT: tuple[tuple[type[TablesError], str], ...] = (
    (TableGoneError, "its folder has been gone"),
    (StoreDeniedError, "the store has denied access"),
    (StoreFullError, "the store has been full"),
    (StoreUnavailableError, "the store has not answered"),
)


class Outage:
    """One step after the other fails with what may pass by itself, until one succeeds. ``since_ms``: the first, since the epoch.

    ``work``: which steps fail, by a name of the caller's. ``what`` fails, for the alarm.
    """

    def __init__(self, what: str = "") -> None:
        self._what = f"{what}, " if what else ""
        self._work: set[str] = set()
        self._since_ms = 0
        self._failures = 0
        self._last: TablesError | None = None

    @property
    def is_on(self) -> bool:
        """Whether anything failed that has not succeeded since."""
        return bool(self._work)

    def affects(self, work: str) -> bool:
        """Whether this failed and has not succeeded since."""
        return work in self._work

    def note_failure(self, work: str, error: TablesError, now_ms: int) -> None:
        """``error``: why, with the operation and the file."""
        self._since_ms = self._since_ms if self._work else now_ms
        self._work.add(work)
        self._failures += 1
        self._last = error

    def note_success(self, work: str) -> None:
        """Over once all that failed has succeeded."""
        self._work.discard(work)
        if not self._work:
            self._failures, self._last = 0, None

    @property
    def alarm(self) -> str:
        """Empty when all is well."""
        if self._last is None:
            return ""
        return f"{self._what}{lasting(self._last, self._since_ms)} ({self._failures} times; it is tried again): {self._last}"


def lasting(error: TablesError, since_ms: int) -> str:
    """``the store has denied access since 2026-11-22 14:03:22 UTC``; ``since_ms``: since the epoch."""
    what = next((what for kind, what in _WHAT if isinstance(error, kind)), "this has failed")
    return f"{what} since {datetime.fromtimestamp(since_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
