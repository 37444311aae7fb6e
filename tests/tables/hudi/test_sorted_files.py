"""Base files whose rows lie in the order that the table's settings want, by compaction and by a bulk load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from headgate_tables import hudi
from headgate_tables.errors import OptionError
from headgate_tables.face.altering import Alteration
from headgate_tables.face.row_order import CURVES
from headgate_tables.hudi.services.compaction import base_writer
from headgate_tables.hudi.services.compaction.curves import order_of
from headgate_tables.hudi.services.planning import unsorted
from support.oracle import Oracle, Row
from support.overwriting import overwrite
from support.readers import read_by_hudi_rs, read_by_us, without_meta
from support.same_rows import assert_same_rows

BY = "hoodie.clustering.plan.strategy.sort.columns"
CURVE = "hoodie.layout.optimize.strategy"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("part", pa.string()),
        ("ts", pa.int64()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("tags", pa.list_(pa.string())),
    ]
)


def row(number: int, version: int = 1) -> Row:
    origin = None if number % 11 == 0 else f"o{number * 7 % 13:02}"
    return {
        "id": number,
        "part": "ab"[number % 2],
        "ts": version,
        "origin": origin,
        "dest": f"d{(number + version) % 17:02}",
        "tags": [str(number), None],
    }


@pytest.fixture
def table(tmp_path: Path) -> Iterator[hudi.Table]:
    made = hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key="id", partition_by="part", ordering="ts", buckets=2)
    with made:
        yield made


def write(table: hudi.Table, oracle: Oracle, numbers: range, version: int) -> None:
    rows = [row(number, version) for number in numbers]
    oracle.upsert(rows)
    table.upsert(pa.Table.from_pylist(rows, schema=SCHEMA))


def newest_files(table: hudi.Table) -> list[Path]:
    root = Path(table.url.removeprefix("file://"))
    return [root / part.partition / part.base for group in table.file_groups() if (part := group.slices()[-1]).base]


def footer(file: Path, key: str = "headgate.order") -> str:
    return (pq.read_metadata(file).metadata or {}).get(key.encode(), b"").decode()


def assert_holds(table: hudi.Table, oracle: Oracle) -> None:
    folder = Path(table.url.removeprefix("file://"))
    expected = pa.Table.from_pylist(oracle.rows(), schema=SCHEMA)
    assert_same_rows(without_meta(read_by_us(folder)), expected, "ours")
    assert_same_rows(without_meta(read_by_hudi_rs(folder)), expected, "hudi-rs")
    assert table.verify().ok


def values(file: Path, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(each[name] for name in columns) for each in pq.read_table(file, columns=list(columns)).to_pylist()]


@pytest.mark.parametrize("group_rows", [50, 131_072])
def test_compactions_sort_rows_of_base_and_logs_alike(
    table: hudi.Table, group_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_writer, "GROUP_ROWS", group_rows)
    table.configure({BY: "origin, dest"})
    oracle = Oracle(["id"], ["part"], "ts")
    write(table, oracle, range(600), 2)
    write(table, oracle, range(300, 900), 3)
    write(table, oracle, range(200), 1)
    gone = [{"id": number, "part": "ab"[number % 2], "ts": 9} for number in range(0, 900, 7)]
    oracle.delete(gone)
    table.delete(pa.Table.from_pylist(gone, schema=pa.schema([SCHEMA.field(name) for name in ("id", "part", "ts")])))
    done = table.compact()
    assert not done.dropped
    assert sum(each.rows for each in done.finished) == len(oracle.rows())
    files = newest_files(table)
    assert len(files) == 4
    for file in files:
        found = values(file, "origin", "dest")
        assert found == sorted(found, key=lambda each: (each[0] is None, *each)), "null last"
        assert footer(file) == "LINEAR:origin,dest"
        meta = pq.read_metadata(file)
        assert max(meta.row_group(at).num_rows for at in range(meta.num_row_groups)) <= group_rows
    assert_holds(table, oracle)


def test_what_lies_in_no_order_or_in_another_is_sorted_on_demand_and_nothing_twice(table: hudi.Table) -> None:
    oracle = Oracle(["id"], ["part"], "ts")
    write(table, oracle, range(500), 1)
    table.compact()
    with pytest.raises(OptionError, match="no order to be sorted in"):
        table.compact(sort=True)
    table.configure({BY: "dest"})
    assert table.compact(plan_only=True).planned == ()
    assert len(table.compact(plan_only=True, sort=True).planned) == 4
    assert len(table.compact(sort=True).finished) == 4
    assert table.compact(sort=True).planned == ()
    write(table, oracle, range(100), 2)
    assert {footer(file) for file in newest_files(table)} == {"LINEAR:dest"}
    assert len(table.compact(plan_only=True, sort=True).planned) == 4, "logs have come to all of them"
    table.compact()
    for changes, order in (({CURVE: "HILBERT"}, "HILBERT:dest"), ({BY: "dest,origin"}, "HILBERT:dest,origin")):
        table.configure(changes)
        assert len(table.compact(sort=True).finished) == 4
        assert {footer(file) for file in newest_files(table)} == {order}
    table.configure({BY: None})
    write(table, oracle, range(100), 3)
    table.compact()
    assert {footer(file) for file in newest_files(table)} == {""}
    assert_holds(table, oracle)


def test_a_slice_in_an_open_plan_and_one_that_is_set_aside_are_left_alone(table: hudi.Table) -> None:
    oracle = Oracle(["id"], ["part"], "ts")
    write(table, oracle, range(500), 1)
    table.compact()
    table.configure({BY: "dest"})
    first, *rest = [(group.slices()[-1].partition, group.slices()[-1].file_id) for group in table.file_groups()]
    table.set_aside("/".join(first), "not now")
    plan = table.plan_compaction(forced=True, also=table.look_for_unsorted()())
    assert plan is not None
    assert sorted((each.partition, each.file_id) for each in plan.operations) == sorted(rest)
    assert table.plan_compaction(forced=True, also=table.look_for_unsorted()()) is None
    table.compact()
    assert sorted(footer(file) for file in newest_files(table)) == ["", *["LINEAR:dest"] * 3]
    assert_holds(table, oracle)


def test_a_base_file_that_cannot_be_read_is_planned_and_its_compaction_says_what_is_wrong(table: hudi.Table) -> None:
    write(table, Oracle(["id"], ["part"], "ts"), range(500), 1)
    table.compact()
    table.configure({BY: "dest"})
    damaged, missing, *_ = newest_files(table)
    damaged.write_bytes(b"x" * damaged.stat().st_size)
    missing.unlink()
    done = table.compact(sort=True)
    assert len(done.finished) == 2
    assert sorted(each.output.partition("_")[0] for each in done.dropped) == sorted(
        file.name.partition("_")[0] for file in (damaged, missing)
    )


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("dst", "no column 'dst' to sort by"),
        ("dest,tags", "cannot be sorted by 'tags'"),
        ("dest,dest", "cannot be read"),
        ("last-write", "cannot be read"),
    ],
)
def test_columns_that_cannot_be_sorted_by_are_refused_when_they_are_set(table: hudi.Table, columns: str, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        table.configure({BY: columns})
    assert table.settings.sort_columns == ""


def test_a_restore_that_takes_a_column_away_leaves_the_order_by_the_others(table: hudi.Table) -> None:
    oracle = Oracle(["id"], ["part"], "ts")
    write(table, oracle, range(100), 1)
    saved = table.savepoint()
    table.alter(Alteration(add={"gate": pa.string()}))
    table.configure({BY: "gate,dest"})
    table.restore(saved)
    write(table, oracle, range(50), 2)
    table.compact(sort=True)
    assert {footer(file) for file in newest_files(table)} == {"LINEAR:dest"}
    assert table.compact(sort=True).planned == ()
    assert_holds(table, oracle)


def test_a_bulk_load_sorts_too_and_is_not_sorted_again(table: hudi.Table) -> None:
    table.configure({BY: "origin,dest", CURVE: "ZORDER"})
    rows = [row(number) for number in range(500)]
    overwrite(table, pa.Table.from_pylist(rows, schema=SCHEMA), "insert_overwrite_table")
    files = newest_files(table)
    assert {footer(file) for file in files} == {"ZORDER:origin,dest"}
    for file in files:
        stored = pq.read_table(file, columns=["origin", "dest"])
        assert order_of(stored, "ZORDER").to_pylist() == list(range(stored.num_rows))
    assert table.compact(sort=True).planned == ()
    oracle = Oracle(["id"], ["part"], "ts")
    oracle.upsert(rows)
    assert_holds(table, oracle)


@pytest.mark.slow
@pytest.mark.parametrize("curve", CURVES)
def test_filters_on_columns_of_the_order_read_fewer_row_groups(tmp_path: Path, curve: str) -> None:
    """With row groups as large as they are: 131,072 rows."""
    count, rng = 1_500_000, np.random.default_rng(3)
    columns = {name: pa.array(rng.integers(0, 400, count)).cast(pa.string()) for name in ("origin", "dest")}
    rows = pa.table({"id": pa.array(np.arange(count)), **columns})
    with hudi.create_table(str(tmp_path / "t"), rows.schema, record_key="id", buckets=1) as table:
        table.upsert(rows)
        table.upsert(rows.slice(0, 1))
        table.compact()
        before = [groups_that_may_hold(newest_files(table), *each) for each in FILTERS]
        table.configure({BY: "origin,dest", CURVE: curve})
        table.compact(sort=True)
        after = [groups_that_may_hold(newest_files(table), *each) for each in FILTERS]
        assert before == [12, 12]
        assert after[0] <= 6
        assert after[1] <= (12 if curve == "LINEAR" else 6)
        for column, value in FILTERS:
            found = table.scan(filter=pc.field(column) == value, columns=["id"]).to_table()
            assert sorted(found["id"].to_pylist()) == rows.filter(pc.field(column) == value)["id"].to_pylist()


FILTERS = [("origin", "217"), ("dest", "88")]


def groups_that_may_hold(files: list[Path], column: str, value: str) -> int:
    """Row groups whose statistics do not rule the value out."""
    found = 0
    for meta in map(pq.read_metadata, files):
        at = meta.schema.to_arrow_schema().get_field_index(column)
        groups = [meta.row_group(number).column(at).statistics for number in range(meta.num_row_groups)]
        found += sum(each is None or each.min <= value <= each.max for each in groups)
    return found


def test_a_look_at_footers_reads_no_more_than_these(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    write(table, Oracle(["id"], ["part"], "ts"), range(500), 1)
    table.compact()
    table.configure({BY: "dest"})
    write(table, Oracle(["id"], ["part"], "ts"), range(1), 2)
    looked: list[str] = []
    read = unsorted._order_of
    monkeypatch.setattr(unsorted, "_order_of", lambda store, part: looked.append(part.base) or read(store, part))
    look = table.look_for_unsorted()
    assert looked == []
    assert len(look()) == len(set(looked)) == len(looked) == 3, "the one with a log is due anyway"
