"""The wall clock by which a coordinator's tables issue times; it tells no time that others deny (``trusted_time.py``)."""

import threading
from dataclasses import dataclass

import structlog

from headgate_coordinator.core.trusted_time import TrustedTime, Verdict
from headgate_runtime.world import Clock
from headgate_tables import system
from headgate_tables.commitlog.times import format_time
from headgate_tables.errors import ClockError

LOOK_S = 0.2
"""Between looks while nothing may be issued."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class TimeWitness:
    """Who else knows the time; ``independent``: it runs on another machine."""

    name: str
    independent: bool


class GuardedClock:
    """A ``headgate_tables.system.Clock``; for all threads of the process. ``wall``: the clock that is guarded."""

    def __init__(self, wall: system.Clock, clock: Clock) -> None:
        self._wall = wall
        self._clock = clock
        self._time = TrustedTime()
        self._turn = threading.Lock()
        self._told = False

    def note_reading(self, witness: TimeWitness, ms: float, at: float) -> None:
        """``ms``: what its clock said, since the epoch, when our monotonic clock said ``at``."""
        with self._turn:
            self._time.note_reading(witness.name, ms, at, independent=witness.independent)

    def verdict(self) -> Verdict:
        """As of now."""
        return self._look(self._wall.now_ms())

    def _look(self, wall_ms: int) -> Verdict:
        with self._turn:
            verdict = self._time.judge(wall_ms, self._clock.monotonic())
            told, self._told = self._told, bool(verdict.alarm)
        if told != bool(verdict.alarm):
            _log.warning("clock", alarm=verdict.alarm or "the clock is right again", wall=format_time(wall_ms))
        return verdict

    def now_ms(self) -> int:
        """Raises ClockError for a time that is not believed."""
        now = self._wall.now_ms()
        verdict = self._look(now)
        if not verdict.believed:
            raise ClockError(
                verdict.alarm, fix="Correct this machine's clock, or the witness's; then checkpoints go on by themselves."
            )
        return now

    def monotonic(self) -> float:
        return self._wall.monotonic()

    def sleep(self, seconds: float) -> None:
        self._wall.sleep(seconds)

    async def until_believed(self) -> None:
        """Returns when times may be issued."""
        while not self.verdict().believed:
            await self._clock.sleep(LOOK_S)
