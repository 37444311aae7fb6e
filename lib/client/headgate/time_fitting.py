"""Which Python values fit columns of dates and timestamps; ``headgate.fitting`` has the rules."""

import datetime
import decimal
import operator
from collections.abc import Sequence
from typing import Any, cast
from zoneinfo import ZoneInfo

import pyarrow as pa

from headgate.fitting import Scalars, UnfitValueError

_GETS_ZONE = operator.attrgetter("tzinfo")
_GETS_MICROSECOND = operator.attrgetter("microsecond")
_NAIVE = (
    'Give it a zone: value.replace(tzinfo=datetime.UTC) if it is in UTC, else value.replace(tzinfo=ZoneInfo("Europe/Berlin")).'
)


class Dates(Scalars):
    """Days; from datetimes Arrow would cut the time off, and numbers it would count from 1970."""

    as_is = frozenset((datetime.date, type(None)))

    def converted(self, value: object) -> object:
        value = _datetime_of(value)
        if isinstance(value, datetime.datetime):
            if value.time() != datetime.time() or _nanoseconds(value):
                raise UnfitValueError("it has a time of day", "Give value.date().")
            return value.date()
        if isinstance(value, str):
            raise UnfitValueError("it is text", "Give datetime.date.fromisoformat(value).")
        return super().converted(value)


class Timestamps(Scalars):
    """Instants; Arrow would take any zone for UTC where there is none, and cut digits off."""

    as_is = frozenset((datetime.datetime, type(None)))

    def __init__(self, kind: "pa.TimestampType[Any, Any]") -> None:
        super().__init__(kind)
        self.unit = kind.unit
        self.step = {"s": 1_000_000, "ms": 1_000}.get(kind.unit, 1)
        self.has_zone = kind.tz is not None

    def takes(self, values: Sequence[object]) -> bool:
        if not super().takes(values):
            return False
        present = [value for value in values if value is not None]
        if self.step > 1 and any(microsecond % self.step for microsecond in map(_GETS_MICROSECOND, present)):
            return False
        return self.has_zone and _have_whole_offsets(cast("list[datetime.datetime]", present))

    def converted(self, value: object) -> object:
        value = _datetime_of(value)
        match value:
            case datetime.datetime():
                return self._checked(value)
            case str():
                raise UnfitValueError("it is text", "Give datetime.datetime.fromisoformat(value), with a zone.")
            case bool() | int() | float() | decimal.Decimal():
                raise UnfitValueError(
                    "it is a number, and its unit and start are not known",
                    "Give a datetime: datetime.datetime.fromtimestamp(seconds, datetime.UTC).",
                )
            case datetime.date():
                raise UnfitValueError("it is a date without a time", "Give a datetime with a zone.")
            case _:
                return super().converted(value)

    def _checked(self, value: datetime.datetime) -> datetime.datetime:
        offset = value.utcoffset()
        if self.has_zone and offset is None:
            raise UnfitValueError("it has no time zone", _NAIVE)
        if not self.has_zone and offset is not None:
            raise UnfitValueError("it has a time zone, and the column has none", "Give value.replace(tzinfo=None).")
        if offset is not None and offset.microseconds:
            value = _in_utc(value)
        if _nanoseconds(value) or value.microsecond % self.step:
            raise UnfitValueError("it has digits below the column's unit", f'Give pandas.Timestamp(value).floor("{self.unit}").')
        to_python = getattr(value, "to_pydatetime", None)
        return cast("datetime.datetime", to_python()) if to_python else value


def _have_whole_offsets(values: Sequence[datetime.datetime]) -> bool:
    """Whether all have a zone, and are whole seconds away from UTC: Arrow cuts off what is below."""
    zones = {id(zone): zone for zone in map(_GETS_ZONE, values)}
    if all(zone is datetime.UTC or type(zone) is ZoneInfo for zone in zones.values()):
        return True
    offsets = [value.utcoffset() for value in values]
    return all(offset is not None and not offset.microseconds for offset in offsets)


def _in_utc(value: datetime.datetime) -> datetime.datetime:
    try:
        return value.astimezone(datetime.UTC)
    except OverflowError as error:
        raise UnfitValueError("in UTC it is not within the years 1 to 9999", "Give another moment.") from error


def _datetime_of(value: object) -> object:
    """A datetime without zone for numpy's datetime64; None for its NaT; other values as they are."""
    if type(value).__module__ != "numpy" or type(value).__name__ != "datetime64":
        return value
    given = cast("Any", value)
    if given != given:
        return None
    exact = given.astype("datetime64[us]")
    if exact != given:
        raise UnfitValueError("it has digits below a microsecond", 'Give value.astype("datetime64[us]").')
    return exact.item()


def _nanoseconds(value: datetime.datetime) -> int:
    return int(getattr(value, "nanosecond", 0))
