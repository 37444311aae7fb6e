"""Partitions past their time leave a table: what readers see, and when their files leave the storage."""

from pathlib import Path

import pyarrow as pa

from headgate_tables import hudi
from support.oracle import Oracle, Row
from support.readers import read_by_hudi_rs, read_by_us, without_meta
from support.same_rows import assert_same_rows
from support.systems import NOON, SetClock, system
from support.tables import SHORT

_COLUMNS: dict[str, pa.DataType] = {"id": pa.string(), "day": pa.date32(), "ts": pa.int64()}
SCHEMA = pa.schema(_COLUMNS)
DAY = 86_400_000


def rows(day: int, ts: int) -> list[Row]:
    """Of a day, counted from that of NOON."""
    days = pa.scalar(NOON // DAY + day, pa.int32()).cast(pa.date32()).as_py()
    return [{"id": f"{day}/{n}", "day": days, "ts": ts} for n in range(5)]


def arrow(found: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(found, schema=SCHEMA)


def assert_is(url: str, *steps: list[Row]) -> None:
    oracle = Oracle(["id"], ["day"], "ts")
    for each in steps:
        oracle.upsert(each)
    assert_same_rows(read_by_us(Path(url)), arrow(oracle.rows()), "our reader")
    assert_same_rows(without_meta(read_by_hudi_rs(Path(url))), arrow(oracle.rows()), "hudi-rs")


def made(tmp_path: Path, clock: SetClock, **settings: str) -> hudi.Table:
    table = hudi.create_table(
        str(tmp_path / "t"), SCHEMA, record_key="id", partition_by="day", ordering="ts", buckets=2, system=system(clock)
    )
    table.configure(settings)
    return table


def files(table: hudi.Table, name: str) -> list[Path]:
    return [each for each in Path(table.url.removeprefix("file://"), name).iterdir() if not each.name.startswith(".hoodie")]


def test_old_days_go_and_rows_that_come_later_wait_for_the_next_call(tmp_path: Path) -> None:
    table = made(tmp_path, SetClock(), **{"headgate.ttl": "7d", "headgate.ttl.by": "day"})
    for day in (-9, -8, -7, 0):
        table.upsert(arrow(rows(day, 1)))
    planned = table.expire_partitions(dry_run=True)
    assert planned.instant == ""
    assert_is(table.url, *(rows(day, 1) for day in (-9, -8, -7, 0)))
    done = table.expire_partitions()
    assert (list(done.expired), done.replaced) == (list(planned.expired), len(files(table, next(iter(done.expired)))) * 2)
    assert [len(done.expired), done.left, table.commits()[-1].action] == [2, 0, "replacecommit"]
    assert_is(table.url, rows(-7, 1), rows(0, 1))
    assert table.expire_partitions().instant == ""
    table.upsert(arrow(rows(-9, 0)))
    assert_is(table.url, rows(-7, 1), rows(0, 1), rows(-9, 0))
    assert len(table.expire_partitions().expired) == 1
    assert not table.verify().findings


def test_by_last_write_a_partition_that_is_written_stays_and_one_that_expired_begins_anew(tmp_path: Path) -> None:
    clock = SetClock()
    table = made(tmp_path, clock, **{"headgate.ttl": "7d"})
    table.upsert(arrow(rows(-99, 1)))
    table.upsert(arrow(rows(0, 1)))
    clock.now += 6 * DAY
    table.upsert(arrow(rows(-99, 2)))
    clock.now += 2 * DAY
    assert len(table.expire_partitions().expired) == 1
    assert_is(table.url, rows(-99, 2))
    table.upsert(arrow(rows(0, 0)))
    assert not table.expire_partitions().expired
    assert_is(table.url, rows(-99, 2), rows(0, 0))


def test_files_go_with_the_cleaning_and_those_of_a_savepoint_stay(tmp_path: Path) -> None:
    clock = SetClock()
    table = made(tmp_path, clock, **{"headgate.ttl": "7d", "headgate.ttl.by": "day"}, **SHORT)
    table.upsert(arrow(rows(-9, 1)))
    saved = table.savepoint()
    table.upsert(arrow(rows(-8, 1)))
    kept, gone = list(table.expire_partitions().expired)
    for ts in (1, 2):
        table.upsert(arrow(rows(0, ts)))
    clock.now += 1000
    table.clean()
    assert files(table, kept)
    assert not files(table, gone)
    table.remove_savepoint(saved)
    table.clean()
    assert not files(table, kept)
    assert_is(table.url, rows(0, 1), rows(0, 2))


def test_a_look_ahead_needs_no_setting_and_owns_nothing(tmp_path: Path) -> None:
    table = made(tmp_path, SetClock())
    table.upsert(arrow(rows(-9, 1)))
    with hudi.open_table(table.url, system=system()) as other:
        assert len(other.expire_partitions(dry_run=True, ttl="1w", by="day").expired) == 1
        assert not other.expire_partitions(dry_run=True, ttl="1w").expired
    table.check_owner()
