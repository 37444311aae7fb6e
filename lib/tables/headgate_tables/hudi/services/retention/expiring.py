"""Which partitions are past their time (settings ``headgate.ttl``, ``headgate.ttl.by``). Pure: the clock is handed in.

By last write, as Hudi's KEEP_BY_TIME, or by the date in a partition's value. A clock that is behind expires less; whether to
believe one that is ahead is up to the caller.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Final

import pyarrow as pa

from headgate_tables.commitlog.times import TIME_DIGITS, parse_time
from headgate_tables.errors import CorruptFileError, OptionError, UnsupportedTypeError
from headgate_tables.face.results import ExpireResult
from headgate_tables.face.settings import LAST_WRITE, TableSettings
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.partition_path import PartitionSpec, parse_partition_path
from headgate_tables.hudi.view import FileGroup

MOST: Final = 1000
"""Partitions that one commit removes, Hudi's own default. More: larger slots and a longer pause of a cluster's table."""
_HOUR_MS: Final = 3_600_000
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_DATE: Final = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T -](\d\d))?)?)?|(\d{4})(\d\d)(\d\d)", re.ASCII)
_AGE_BY: Final = "Set headgate.ttl.by to last-write or to a partition column of dates."


def check_ttl(settings: TableSettings, definition: Definition, *, wanted: bool = False) -> None:
    """Raises OptionError for settings that the table does not fit; ``wanted``: also when its partitions never expire."""
    if not settings.ttl_ms:
        if wanted:
            raise OptionError(
                f"partitions of {definition.name} never expire",
                fix=f"Set headgate.ttl first: `headgate configure {definition.name} headgate.ttl=30d`.",
            )
        return
    if not definition.partition_by:
        raise OptionError(
            f"{definition.name} is not partitioned, and headgate.ttl removes whole partitions",
            fix=f"Delete old rows by a condition: `headgate table delete {definition.name} --where \"ts < '2026-01-01'\"`.",
        )
    if settings.ttl_by != LAST_WRITE:
        _check_column(settings.ttl_by, definition)


def _check_column(by: str, definition: Definition) -> None:
    if by not in definition.partition_by:
        columns = ", ".join(definition.partition_by)
        raise OptionError(
            f"headgate.ttl.by={by!r} is no partition column of {definition.name} ({columns})",
            fix=f"{_AGE_BY} By another column rows are deleted with `headgate table delete {definition.name} --where …`.",
        )
    kind = definition.schema.field(by).type
    if not (pa.types.is_date32(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise OptionError(f"headgate.ttl.by={by!r} is a column of {kind}, neither of dates nor of text", fix=_AGE_BY)


def choose_expired(
    groups: Iterable[FileGroup],
    settings: TableSettings,
    definition: Definition,
    now: int,
    completion_of: Callable[[str], str | None],
) -> ExpireResult:
    """``groups``: the live ones. ``now``: milliseconds. ``completion_of``: the completion time of an instant, if it is known."""
    if settings.ttl_by == LAST_WRITE:
        begins: Mapping[str, int | None] = last_writes(groups, completion_of)
    else:
        begins = {path: _end_of(path, settings.ttl_by, definition) for path in {group.partition for group in groups}}
    ends = {path: begin + settings.ttl_ms for path, begin in begins.items() if begin is not None}
    expired = sorted((end, path) for path, end in ends.items() if end <= now)
    chosen = {path: end for end, path in expired[:MOST]}
    coming = min((end for end in ends.values() if end > now), default=None)
    return ExpireResult(chosen, len(expired) - len(chosen), len(begins) - len(ends), coming)


def last_writes(groups: Iterable[FileGroup], completion_of: Callable[[str], str | None]) -> dict[str, int]:
    """When the newest file of each partition became visible, in milliseconds, by path. A compaction counts, as in Hudi."""
    newest: dict[str, str] = {}
    for group in groups:
        times = [log.completion for log in group.logs.values()]
        times += [completion_of(instant) or instant for instant in group.bases]
        newest[group.partition] = max([newest.get(group.partition, ""), *times])
    return {path: parse_time(time.ljust(TIME_DIGITS, "9")) for path, time in newest.items() if time}


def _end_of(path: str, by: str, definition: Definition) -> int | None:
    spec = PartitionSpec(definition.partition_by, definition.hive_style, definition.url_encode)
    types = [definition.schema.field(name).type for name in definition.partition_by]
    try:
        return period_end(parse_partition_path(path, spec, types)[by])
    except (CorruptFileError, UnsupportedTypeError):  # of another program: nobody knows which date it means
        return None


def period_end(value: object) -> int | None:
    """When the hour, day, month or year of a partition's value ends, in milliseconds, UTC; None if it is no date."""
    if isinstance(value, date):
        return _day_end(value)
    found = _DATE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    year, month, day = (found[1] or found[5]), (found[2] or found[6]), (found[3] or found[7])
    try:
        last_month = int(month) if month else 12
        last_day = date(int(year), last_month, int(day) if day else monthrange(int(year), last_month)[1])
    except (ValueError, IndexError):
        return None
    if found[4] is None:
        return _day_end(last_day)
    return _day_end(last_day) - (23 - int(found[4])) * _HOUR_MS if int(found[4]) < 24 else None


def _day_end(day: date) -> int:
    return (day.toordinal() + 1 - _EPOCH_DAY) * 24 * _HOUR_MS
