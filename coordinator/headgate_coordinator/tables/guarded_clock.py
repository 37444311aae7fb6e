"""The wall clock for the times that a coordinator's tables issue. It gives no time that witnesses contradict
(``trusted_time.py``).
"""

import threading
from dataclasses import dataclass

import structlog

from headgate_coordinator.core.trusted_time import ClockStatus, TrustedTime
from headgate_runtime.world import Clock
from headgate_tables import system
from headgate_tables.errors import ClockError
from headgate_tables.face.log import format_time

LOOK_S = 0.2
"""Seconds between looks at the clock while no times may be issued."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class TimeWitness:
    """Another clock. ``independent``: it runs on another machine."""

    name: str
    independent: bool


class GuardedClock:
    """A ``headgate_tables.system.Clock`` for all threads of the process. ``wall``: the clock that it guards."""

    def __init__(self, wall: system.Clock, clock: Clock) -> None:
        self._wall = wall
        self._clock = clock
        self._time = TrustedTime()
        self._turn = threading.Lock()
        self._alarmed = False

    def note_reading(self, witness: TimeWitness, ms: float, at: float) -> None:
        """Notes that the witness's clock showed ``ms``, milliseconds since the epoch, when our monotonic clock showed ``at``."""
        with self._turn:
            self._time.note_reading(witness.name, ms, at, independent=witness.independent)

    def status(self) -> ClockStatus:
        """Judges the clock now."""
        return self._look(self._wall.now_ms())

    def _look(self, wall_ms: int) -> ClockStatus:
        with self._turn:
            status = self._time.judge(wall_ms, self._clock.monotonic())
            alarmed, self._alarmed = self._alarmed, bool(status.alarm)
        if alarmed != bool(status.alarm):
            _log.warning("clock", alarm=status.alarm or "the clock is right again", wall=format_time(wall_ms))
        return status

    def now_ms(self) -> int:
        """Returns milliseconds since the epoch. Raises ClockError for a time that is not believed."""
        now = self._wall.now_ms()
        status = self._look(now)
        if not status.believed:
            raise ClockError(
                status.alarm, fix="Correct this machine's clock, or the witness's; then checkpoints go on by themselves."
            )
        return now

    def monotonic(self) -> float:
        return self._wall.monotonic()

    def sleep(self, seconds: float) -> None:
        self._wall.sleep(seconds)

    async def until_believed(self) -> None:
        """Returns when times may be issued."""
        while not self.status().believed:
            await self._clock.sleep(LOOK_S)
