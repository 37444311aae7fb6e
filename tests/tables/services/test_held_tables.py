"""A reader's lease on a table that is compacted and cleaned meanwhile."""

from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.errors import OptionError, RangeGoneError
from headgate_tables.hudi.leases import LEASE_FOLDER
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from support.handles import open_on
from support.systems import FaultyStore, system
from support.tables import SHORT, create, notes, rows

KEEP_LITTLE = {**SHORT, "headgate.log.retire.after": "0"}


def worn(table: hudi.Table, checkpoints: int) -> None:
    """So many commits, each compacted and cleaned behind."""
    for number in range(checkpoints):
        table.upsert(rows(("a", number + 10, f"late {number}")))
        table.compact()
        table.clean()
        table.archive()


def as_of(table: hudi.Table, point: str) -> dict[str, str]:
    return {row["id"]: row["note"] for row in table.scan(as_of=point).to_table().to_pylist()}


def test_what_a_reader_holds_stays_readable_until_it_lets_go(tmp_path: Path) -> None:
    """Rule D3."""
    table = create(tmp_path)
    table.configure(KEEP_LITTLE)
    table.upsert(rows(("a", 1, "early"), ("b", 1, "early")))
    table.upsert(rows(("a", 2, "later")))
    with hudi.open_table(str(tmp_path / "table")) as reader, reader.lease(seconds=60, holder="a long query") as lease:
        point = lease.point
        worn(table, 4)
        assert as_of(reader, point) == {"a": "later", "b": "early"}
        with hudi.open_table(str(tmp_path / "table")) as another:
            assert as_of(another, point) == {"a": "later", "b": "early"}
            assert notes(another) == {"a": "late 3", "b": "early"}
    worn(table, 2)
    with hudi.open_table(str(tmp_path / "table")) as another, pytest.raises(RangeGoneError):
        as_of(another, point)


def test_a_table_without_commits_cannot_be_held(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no commit"):
        create(tmp_path).lease()


def test_a_lease_that_a_cleaning_has_overtaken_is_given_back_and_another_one_taken(tmp_path: Path) -> None:
    """Rule D3. The cleaning looks for leases before this one is there, and deletes what it would have held."""
    table = create(tmp_path)
    table.configure(KEEP_LITTLE)
    table.upsert(rows(("a", 1, "early")))
    store = FaultyStore(tmp_path / "table", anchor=LOG_LAYOUT.root)
    reader = open_on(store, system())
    points: list[str] = []

    def clean_first(path: str) -> None:
        if path.startswith(LEASE_FOLDER):
            points.append(path.split("-")[1])
            if len(points) == 1:
                worn(table, 4)

    store.before_create = clean_first
    with reader.lease(seconds=60) as lease:
        assert points[0] < points[1] == lease.point
        worn(table, 4)
        assert as_of(reader, lease.point) == {"a": "late 3"}
