"""Which partitions are past their time: pure decisions, and settings that do not fit a table."""

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.times import format_time
from headgate_tables.errors import OptionError
from headgate_tables.face.results import ExpireResult
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.services.retention.expiring import MOST, choose_expired, last_writes, period_end
from headgate_tables.hudi.view import FileGroup, LogFile
from support.tables import create

HOUR, DAY = 3_600_000, 86_400_000
NOON = 1_800_000_000_000


def nothing(_: str) -> str | None:
    return None


def ms(*when: int) -> int:
    return int(datetime(*when, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc, arg-type]


def group(partition: str, *written: int, base: int | None = None) -> FileGroup:
    logs = {f"l{at}": LogFile("0", 1, "t", f"l{at}", format_time(at)) for at in written}
    bases = {format_time(base): "b"} if base is not None else {}
    return FileGroup(partition, f"g{partition}", bases, logs)


def chosen(groups: list[FileGroup], now: int, tmp_path: Path, **keys: str) -> ExpireResult:
    settings = TableSettings.from_texts({"headgate.ttl": "30d"} | {f"headgate.{k}".replace("_", "."): v for k, v in keys.items()})
    definition = create(tmp_path).definition
    assert definition is not None
    return choose_expired(groups, settings, definition, now, nothing)


@pytest.mark.parametrize(
    ("value", "end"),
    [
        ("2026-01-31", ms(2026, 2, 1)),
        (date(2026, 2, 28), ms(2026, 3, 1)),
        ("2026-02", ms(2026, 3, 1)),
        ("2024-02", ms(2024, 3, 1)),
        ("2026", ms(2027, 1, 1)),
        ("20260131", ms(2026, 2, 1)),
        ("2026-01-31T08", ms(2026, 1, 31, 9)),
        ("2026-01-31 23", ms(2026, 2, 1)),
        ("9999-12-31", 253_402_300_800_000),
        *[
            (text, None)
            for text in ("", "x", "2026-13", "2026-02-30", "2026-01-31T24", "0000", "2026-1-1", "202601", "٢٠٢٦", 7, None)
        ],
    ],
)
def test_a_value_ends_with_its_hour_day_month_or_year(value: object, end: int | None) -> None:
    assert period_end(value) == end


def test_a_partition_expires_when_its_newest_file_is_as_old_as_the_setting_says(tmp_path: Path) -> None:
    groups = [
        group("old", NOON, NOON - 90 * DAY),
        group("new", NOON - 90 * DAY),
        group("new", NOON + 1),
        group("new", NOON - 60 * DAY),
        group("based", base=NOON - 5),
    ]
    assert last_writes(groups, nothing) == {"old": NOON, "new": NOON + 1, "based": NOON - 5}
    found = chosen(groups, NOON + 30 * DAY, tmp_path)
    assert list(found.expired.items()) == [("based", NOON + 30 * DAY - 5), ("old", NOON + 30 * DAY)]
    assert (found.left, found.undated, found.next_ms) == (0, 0, NOON + 30 * DAY + 1)
    assert list(chosen(groups, NOON + 30 * DAY - 1, tmp_path / "b").expired) == ["based"]


def test_a_base_file_is_as_old_as_its_completion_where_that_is_known() -> None:
    based = group("p", base=NOON)
    assert last_writes([based], lambda _: format_time(NOON + 7)) == {"p": NOON + 7}


def test_a_date_counts_instead_of_writes_and_what_is_none_stays(tmp_path: Path) -> None:
    groups = [group(each, ms(2026, 3, 1)) for each in ("2026-01-01", "2026-01-02", "other", "2026-02-01")]
    found = chosen(groups, ms(2026, 2, 1), tmp_path, ttl_by="part")
    assert (list(found.expired), found.undated, found.next_ms) == (["2026-01-01"], 1, ms(2026, 2, 2))


def test_one_call_takes_a_thousand_the_oldest_first(tmp_path: Path) -> None:
    groups = [group(f"p{n:05}", NOON - n) for n in range(MOST + 7)]
    found = chosen(groups, NOON + 31 * DAY, tmp_path)
    assert (len(found.expired), found.left, next(iter(found.expired))) == (MOST, 7, f"p{MOST + 6:05}")


@pytest.mark.parametrize("text", ["30", "0d", "-1d", "30m", "1.5d", "99999d", ""])
def test_a_ttl_without_a_unit_or_sense_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"headgate\.ttl"):
        TableSettings.from_texts({"headgate.ttl": text})


def test_a_ttl_is_kept_as_text_and_counts_in_milliseconds() -> None:
    for text, count in (("36h", 36 * HOUR), ("030d".lstrip("0"), 30 * DAY), ("2w", 14 * DAY), ("NEVER", 0)):
        settings = TableSettings.from_texts({"headgate.ttl": text})
        assert settings.ttl_ms == count
        assert TableSettings.from_texts(settings.to_texts()) == settings


def test_settings_that_do_not_fit_the_table_are_refused_and_change_nothing(tmp_path: Path) -> None:
    with create(tmp_path / "a", partitioned=False) as table, pytest.raises(OptionError, match="not partitioned") as refused:
        table.configure({"headgate.ttl": "30d"})
    assert "table delete" in refused.value.fix
    with create(tmp_path / "b") as table:
        with pytest.raises(OptionError, match="no partition column") as refused:
            table.configure({"headgate.ttl": "30d", "headgate.ttl.by": "ts"})
        assert "--where" in refused.value.fix
        assert table.settings.ttl_ms == 0
        with pytest.raises(OptionError, match="never expire"):
            table.expire_partitions(dry_run=True)
        assert table.configure({"headgate.ttl": "30d", "headgate.ttl.by": "part"}).ttl_ms == 30 * DAY


def test_a_column_of_numbers_has_no_dates(tmp_path: Path) -> None:
    columns: dict[str, pa.DataType] = {"id": pa.string(), "n": pa.int32()}
    schema = pa.schema(columns)
    table = hudi.create_table(str(tmp_path / "t"), schema, record_key="id", partition_by="n", buckets=1)
    with pytest.raises(OptionError, match="column of int32"):
        table.configure({"headgate.ttl": "30d", "headgate.ttl.by": "n"})
