"""The grace time of a dropped table: nothing is written, nothing goes, and it comes back whole (rule D9)."""

from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.errors import DeposedError, TableDroppedError, TableInGraceError
from support.readers import read_by_hudi_rs
from support.tables import create, rows

FAR = 10**15
"""Milliseconds since the epoch, after every grace time."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with create(tmp_path) as table:
        for note in ("older", "newer"):
            table.upsert(rows(("a", 1, note), ("b", 1, note)))
        assert table.plan_compaction(forced=True) is not None
    return tmp_path / "table"


def opened(folder: Path) -> hudi.Table:
    return hudi.open_table(str(folder))


def data_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if ".log." in path.name or path.suffix == ".parquet")


def test_d9_in_its_grace_time_a_table_takes_nothing_and_comes_back_whole(folder: Path) -> None:
    before, owner = data_in(folder), opened(folder)
    plans = list(owner.plans)
    done = owner.drop("ann", grace_ms=60_000)
    assert (done.by, done.files, done.until > 0) == ("ann", 0, True)
    for handle in (owner, opened(folder)):
        grace = handle.grace
        assert grace is not None
        assert (grace.by, grace.until) == ("ann", done.until)
        for write in (lambda h: h.upsert(rows(("c", 1, "c"))), lambda h: h.win_offsets({}), lambda h: h.cancel_plan(plans[0])):
            with pytest.raises(TableInGraceError, match=r"was dropped at 2.* by ann.*brings it back until 2"):
                write(handle)
    with opened(folder) as later:
        assert later.drop("eve", grace_ms=1).until == done.until
        assert later.drop_expired(done.until - 1) is None
        assert later.undrop("eve")
        assert not later.undrop("eve")
    assert data_in(folder) == before
    with opened(folder) as back:
        assert (back.grace, list(back.plans)) == (None, plans)
        back.compact()
        back.upsert(rows(("c", 1, "c")))
        assert sorted(back.scan().to_table()["id"].to_pylist()) == ["a", "b", "c"]
    assert sorted(read_by_hudi_rs(folder)["id"].to_pylist()) == ["a", "b", "c"]


def test_d9_a_fold_keeps_the_grace_time(folder: Path) -> None:
    with opened(folder) as table:
        until = table.drop("ann", grace_ms=60_000).until
        log = table._opened.log
        assert log is not None
        log.fold()
    grace = opened(folder).grace
    assert grace is not None
    assert (grace.by, grace.until) == ("ann", until)


def test_d9_when_the_time_is_over_the_files_go_and_the_drop_is_that_of_before(folder: Path) -> None:
    first = opened(folder).drop("ann", grace_ms=60_000)
    with opened(folder) as table:
        done = table.drop_expired(first.until)
    assert done is not None
    assert (done.time, done.by, done.files > 0, data_in(folder)) == (first.time, "ann", True, [])
    with pytest.raises(TableDroppedError, match="by ann"):
        opened(folder)


def test_d9_a_table_that_was_brought_back_is_not_deleted_by_a_process_that_slept(folder: Path) -> None:
    opened(folder).drop("ann", grace_ms=60_000)
    before = data_in(folder)
    sleeper = opened(folder)
    with opened(folder) as other:
        assert other.undrop()
    assert sleeper.drop_expired(FAR) is None
    assert not opened(folder).undrop()
    assert data_in(folder) == before
    again = opened(folder)
    again.drop("ann", grace_ms=60_000)
    late = opened(folder)
    assert late.undrop()
    with pytest.raises(DeposedError):
        again.drop("ann")
    assert data_in(folder) == before
