"""Failures that keep a table from its work: since when, how often, and the last error. For `headgate status`."""

from datetime import UTC, datetime

from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_tables.errors import (
    ClockError,
    StoreDeniedError,
    StoreFullError,
    StoreUnavailableError,
    TableGoneError,
    TablesError,
)

_FAILED = "this has failed"
_WHAT: tuple[tuple[type[TablesError], AlarmKind, str], ...] = (
    (TableGoneError, AlarmKind.FOLDER_GONE, "its folder has been gone"),
    (StoreDeniedError, AlarmKind.STORE_DENIED, "the store has denied access"),
    (StoreFullError, AlarmKind.STORE_FULL, "the store has been full"),
    (StoreUnavailableError, AlarmKind.STORE_SILENT, "the store has not answered"),
    (ClockError, AlarmKind.FUTURE_TIMES, _FAILED),
)


class Outage:
    """Lasts from the first failure of a kind of work until that work succeeds. Only for errors that may pass by themselves.

    ``what``: the thing that fails, for the alarm. ``work`` in the methods: a name that the caller gives a kind of work.
    """

    def __init__(self, what: str = "") -> None:
        self._what = f"{what}, " if what else ""
        self._work: set[str] = set()
        self._since_ms = 0
        self._failures = 0
        self._last: TablesError | None = None

    @property
    def is_on(self) -> bool:
        """Whether any work has failed and not succeeded since."""
        return bool(self._work)

    def affects(self, work: str) -> bool:
        """Whether this work has failed and not succeeded since."""
        return work in self._work

    def note_failure(self, work: str, error: TablesError, now_ms: int) -> None:
        """Notes a failure. ``error`` names the operation and the file."""
        self._since_ms = self._since_ms if self._work else now_ms
        self._work.add(work)
        self._failures += 1
        self._last = error

    def note_success(self, work: str) -> None:
        """Notes a success. The outage is over when all failed work has succeeded."""
        self._work.discard(work)
        if not self._work:
            self._failures, self._last = 0, None

    @property
    def alarm(self) -> StandingAlarm | None:
        """The alarm for operators, None without an outage. Another thread than that of the work may ask."""
        last = self._last
        if last is None:
            return None
        kind, lasts = lasting(last, self._since_ms, otherwise=AlarmKind.STORE_FAILED)
        return StandingAlarm(kind, f"{self._what}{lasts} ({self._failures} times; it is tried again): {last}")


def lasting(error: TablesError, since_ms: int, otherwise: AlarmKind) -> tuple[AlarmKind, str]:
    """Returns the kind of the alarm and ``the store has denied access since 2026-11-22 14:03:22 UTC``. ``since_ms``: milliseconds
    since the epoch. ``otherwise``: the kind for an error that has no kind of its own.
    """
    found = (each for each in _WHAT if isinstance(error, each[0]))
    _, kind, what = next(found, (TablesError, otherwise, _FAILED))
    return kind, f"{what} since {datetime.fromtimestamp(since_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
