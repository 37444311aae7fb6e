"""The one generator of a table's times (rules TM1, TM3).

A time is text, ``yyyyMMddHHmmssSSS`` in UTC, so that comparing text compares time.
"""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from headgate_tables.errors import ClockError, CorruptFileError
from headgate_tables.system import Clock

TIME_DIGITS = 17
MAX_CLOCK_SET_BACK_MS = 5_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_time(milliseconds: int) -> str:
    """Milliseconds since the epoch as an instant time of 17 digits, UTC."""
    moment = _EPOCH + timedelta(milliseconds=milliseconds)
    return moment.strftime("%Y%m%d%H%M%S") + f"{milliseconds % 1000:03d}"


def parse_time(text: str) -> int:
    """An instant time as milliseconds since the epoch. Raises CorruptFileError for anything else."""
    try:
        moment = datetime.strptime(text[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        milliseconds = int(text[14:TIME_DIGITS])
    except ValueError as error:
        raise CorruptFileError(
            f"{text!r} is not an instant time", fix="Instant times have 17 digits, yyyyMMddHHmmssSSS."
        ) from error
    return (moment - _EPOCH) // timedelta(milliseconds=1) + milliseconds


class TimesAhead(NamedTuple):
    """An operator's decision that times continue above ``floor``, although the clock said ``at`` (ms since the epoch) then."""

    floor: str
    at: int

    def allows(self, last: int, now: int) -> bool:
        """Whether ``last`` is ahead of the clock because times advanced ms by ms, and not because another clock was wrong."""
        return last <= parse_time(self.floor) + max(now - self.at, 0) + MAX_CLOCK_SET_BACK_MS


class TimeGenerator:
    """Requested and completion times of one table: strictly increasing, whatever the wall clock does.

    ``floor`` is the largest time in any slot (rule TM1); the first time issued is above it. ``ahead``: what an operator accepted.
    """

    def __init__(self, clock: Clock, floor: str, ahead: TimesAhead | None = None) -> None:
        self._clock = clock
        self._last = parse_time(floor)
        self._ahead = ahead

    def observe(self, time: str) -> None:
        """Takes note of a time that another program issued: the next one is above it (rule TM1). 14 digits: a whole second."""
        self._last = max(self._last, parse_time(time.ljust(TIME_DIGITS, "9")))

    def next(self) -> str:
        """A time above every one issued before. Raises ClockError when the clock is more than 5 s behind the last one."""
        self._last = max(self.now(), self._last + 1)
        return format_time(self._last)

    def accept_ahead(self) -> TimesAhead | None:
        """Lets times advance ms by ms while the clock is behind those issued so far. None when it is not behind."""
        now = self._clock.now_ms()
        if self._last - now <= MAX_CLOCK_SET_BACK_MS:
            return None
        self._ahead = TimesAhead(format_time(self._last), now)
        return self._ahead

    def now(self) -> int:
        """The wall clock in ms. Raises ClockError when it is too far behind the last time issued (rule TM3)."""
        now = self._clock.now_ms()
        accepted = self._ahead is not None and self._ahead.allows(self._last, now)
        if self._last - now > MAX_CLOCK_SET_BACK_MS and not accepted:
            raise ClockError(
                f"the clock says {format_time(now)}, but the table has already issued {format_time(self._last)}",
                fix="Correct the clock, or wait until it has caught up. If it is right and the table's times are wrong, "
                "`headgate table adopt TABLE --future-times` goes on above them.",
            )
        return now

    def age_ms(self, time: str) -> int:
        """How long ago a time was issued, by the wall clock."""
        return self.now() - parse_time(time)
