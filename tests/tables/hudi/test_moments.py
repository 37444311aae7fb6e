"""Points in time: instants, clock times and "10 minutes ago" name the same commits, and what could mean two times is refused."""

import re
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import OptionError
from headgate_tables.hudi.moments import moment_text
from support.systems import SetClock, system

NOW_MS = 1_795_428_000_123  # 2026-11-23 10:00:00.123
AHEAD = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        ("20261122100000", "20261122100000"),
        ("20261122100000123", "20261122100000123"),
        ("2026-11-22", "20261122000000000"),
        ("2026-11-22 10:00", "20261122100000000"),
        (" 2026-11-22T10:00 ", "20261122100000000"),
        ("2026-11-22T10:00:05", "20261122100005000"),
        ("2026-11-22 10:00:05.123999", "20261122100005123"),
        ("2026-11-22T10:00Z", "20261122100000000"),
        ("2026-11-22 10:00 UTC", "20261122100000000"),
        ("2026-11-22 12:00+02:00", "20261122100000000"),
        ("2026-11-22 12:00 +0200", "20261122100000000"),
        ("2026-11-22 05:00:00-05:00", "20261122100000000"),
        (str(datetime(2026, 11, 22, 10, tzinfo=UTC)), "20261122100000000"),
        (datetime(2026, 11, 22, 10, tzinfo=UTC), "20261122100000000"),
        (datetime(2026, 11, 22, 12, 0, 0, 123_999, AHEAD), "20261122100000123"),
        (datetime(2026, 11, 22, 10, tzinfo=UTC).astimezone(AHEAD).isoformat(), "20261122100000000"),
        ("10 minutes ago", "20261123095000123"),
        ("1 minute ago", "20261123095900123"),
        ("90 s ago", "20261123095830123"),
        ("30sec ago", "20261123095930123"),
        ("2 Hours ago", "20261123080000123"),
        ("1 day ago", "20261122100000123"),
        ("1 week ago", "20261116100000123"),
        ("2000 weeks ago", "19880725100000123"),
        ("99999 weeks ago", "19700101000000000"),
        ("0001-01-01", "19700101000000000"),
        ("9999-12-31 23:59:59.999", "99991231235959999"),
    ],
)
def test_a_moment_is_a_time_of_the_timeline(moment: str | datetime, text: str) -> None:
    assert moment_text(moment, "as_of", lambda: NOW_MS) == text


@pytest.mark.parametrize(
    "moment",
    [
        "yesterday",
        "",
        "2026",
        "20261122",
        "202611221000",
        "2026112210000",
        "2026-11-22 25:00",
        "2026-13-01",
        "2026-11-22x10:00",
        "2026-11-22 10",
        "10 minutes",
        "-10 minutes ago",
        "10 fortnights ago",
        date(2026, 11, 22),
        20261122100000,
        datetime(2026, 11, 22, 10),  # noqa: DTZ001 - that is the case
    ],
)  # fmt: skip
def test_what_is_no_time_or_could_mean_two_is_refused(moment: object) -> None:
    with pytest.raises(
        OptionError, match=re.escape(f"since={str(moment) if isinstance(moment, datetime) else moment!r}")
    ) as caught:
        moment_text(moment, "since", lambda: NOW_MS)  # type: ignore[arg-type]
    assert caught.value.fix


def test_clock_times_are_refused_where_the_timeline_has_a_zone_of_its_own() -> None:
    text = "20261122100000123"
    assert moment_text(text, "as_of", lambda: NOW_MS, is_utc=False) == text
    with pytest.raises(OptionError, match="a zone of its own"):
        moment_text("2026-11-22 10:00", "as_of", lambda: NOW_MS, is_utc=False)


def test_a_table_is_read_as_of_a_clock_time(tmp_path: Path) -> None:
    clock = SetClock(NOW_MS)
    schema = pa.schema([("id", pa.int64())])
    table = hudi.create_table(str(tmp_path / "t"), schema, record_key="id", buckets=1, system=system(clock))
    table.upsert(pa.table({"id": [1]}, schema))
    clock.now += 3_600_000
    table.upsert(pa.table({"id": [2]}, schema))
    clock.now += 60_000

    def read(**when: str | datetime) -> list[int]:
        return sorted(table.scan(**when).to_table()["id"].to_pylist())

    assert read(as_of="2026-11-23 10:30") == read(as_of="30 minutes ago") == [1]
    assert read(as_of=datetime(2026, 11, 23, 10, 30, tzinfo=UTC)) == [1]
    assert read(since="2026-11-23 10:30") == read(since="30 min ago") == [2]
    assert read(as_of="2026-11-23 11:30") == [1, 2]
    with pytest.raises(OptionError, match="is later than"):
        read(since="5 minutes ago", as_of="30 minutes ago")
