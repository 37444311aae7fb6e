"""A foreign instant may be older than the file that names it: the guard looks back, and lists little for that (rule F1)."""

from itertools import pairwise
from pathlib import Path

import pytest

from headgate_tables.commitlog.times import format_time
from headgate_tables.errors import ForeignWriterError
from headgate_tables.hudi.guard import LATE_MS, LOOK_BACK_EVERY_MS
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER
from headgate_tables.storage.store import FolderListing
from support.systems import SetClock, system
from support.tables import create, notes, rows
from support.traces import opened


@pytest.mark.parametrize("late_ms", [10_000, LATE_MS - 1_000])
@pytest.mark.parametrize("every_ms", [500, 10_000], ids=["busy", "slow"])
def test_f1_a_foreign_instant_whose_file_comes_late_is_noticed_soon(tmp_path: Path, late_ms: int, every_ms: int) -> None:
    """Its program's clock is behind, or it took the instant long before it said so."""
    clock = SetClock()
    table = create(tmp_path, system=system(clock))
    for number in range(12):
        clock.now += 10_000
        table.upsert(rows(("a", number, "x")))
    foreign = format_time(clock.now - late_ms)
    (tmp_path / "table" / TIMELINE_FOLDER / f"{foreign}.commit.requested").touch()

    def go_on() -> None:
        for number in range(2 + LOOK_BACK_EVERY_MS // every_ms):
            clock.now += every_ms
            table.upsert(rows(("b", number, "x")))

    with pytest.raises(ForeignWriterError, match=foreign):
        go_on()


def test_f1_most_looks_list_what_is_new_alone(tmp_path: Path) -> None:
    clock = SetClock()
    create(tmp_path, system=system(clock)).close()
    table = opened(tmp_path, clock=clock)
    real, listed = table._store.list_folder, []

    def list_folder(folder: str, *, after: str | None = None, sizes: bool = False) -> FolderListing:
        if folder == TIMELINE_FOLDER:
            listed.append(after or "")
        return real(folder, after=after, sizes=sizes)

    table._store.list_folder = list_folder  # type: ignore[method-assign]
    for number in range(100):
        clock.now += 500
        table.upsert(rows(("a", number, f"a{number}")))
    back = [after for before, after in pairwise(listed) if after < before]
    assert len(listed) >= 100
    assert 8 <= len(back) <= 10, "once in 5 of the 50 seconds"
    assert notes(table) == {"a": "a99"}
