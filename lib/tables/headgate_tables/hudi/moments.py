"""Points in a table's time as people and programs give them, as the timeline's own text."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from headgate_tables.commitlog.times import format_time
from headgate_tables.errors import OptionError
from headgate_tables.face.reader import Moment

_INSTANT = re.compile(r"[0-9]{14}|[0-9]{17}")
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?))? ?(Z|UTC|[+-]\d\d:?\d\d)?")
_AGO = re.compile(r"(\d+) ?(s|sec|second|m|min|minute|h|hour|d|day|week)s? ago")
_SECONDS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86_400, "day": 86_400}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_END_MS = 253_402_300_799_999  # 9999-12-31, the last with four digits
_FORMS = (
    "Give an instant or completion time of the timeline (20261122100000123), a date and time such as '2026-11-22 10:00', which "
    "is UTC without a zone, '10 minutes ago', or in a program a datetime with a zone."
)


def moment_text(moment: Moment, name: str, now_ms: Callable[[], int], *, is_utc: bool = True) -> str:
    """``moment`` as 14 or 17 digits, yyyyMMddHHmmss[SSS]; digits of the timeline stay as they are. Below 1 ms it rounds down.

    ``name``: of the parameter, for errors. ``now_ms``: the clock, for "10 minutes ago". ``is_utc``: whether the table's times are
    in UTC; of others no clock time can be found. A datetime without a zone is refused: its program may mean local time or UTC.
    Raises OptionError.
    """
    if isinstance(moment, str) and _INSTANT.fullmatch(moment):
        return moment
    milliseconds = _of_datetime(moment, name) if isinstance(moment, datetime) else _of_text(moment, name, now_ms)
    if not is_utc:
        raise OptionError(
            f"{name}={str(moment)!r}: the program that made this table writes its times in a zone of its own",
            fix="Give an instant or a completion time as commits() gives them.",
        )
    return format_time(min(max(milliseconds, 0), _END_MS))


def _of_datetime(moment: datetime, name: str) -> int:
    if moment.tzinfo is None:
        raise OptionError(
            f"{name}={str(moment)!r} has no time zone", fix="Give it one, such as datetime.UTC, or give text in UTC."
        )
    return int((moment - _EPOCH) // timedelta(milliseconds=1))


def _of_text(moment: object, name: str, now_ms: Callable[[], int]) -> int:
    text = moment.strip() if isinstance(moment, str) else ""
    if found := _AGO.fullmatch(text.lower()):
        return now_ms() - 1000 * int(found[1]) * _SECONDS.get(found[2], 7 * 86_400)
    if found := _ISO.fullmatch(text):
        zone = "+00:00" if found[3] in (None, "Z", "UTC") else found[3]
        try:
            return _of_datetime(datetime.fromisoformat(f"{found[1]}T{found[2] or '00:00'}{zone}"), name)
        except ValueError as error:
            raise OptionError(f"{name}={text!r} is not a date and time: {error}", fix=_FORMS) from error
    raise OptionError(f"{name}={moment!r} is not a point in the table's time", fix=_FORMS)
