"""Partitions with another number of buckets than the rest (rule FI6): rows find their groups, whatever is done later."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.tail import read_state
from headgate_tables.errors import OptionError
from headgate_tables.face.bucket_rules import matches
from headgate_tables.hudi.bucket_rules import expressions_of
from headgate_tables.hudi.keys.bucket import bucket_of
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from support import overwriting
from support.oracle import Oracle, Row
from support.readers import read_by_hudi_rs, read_by_us, without_meta
from support.same_rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("day", pa.string()), ("ts", pa.int64()), ("v", pa.int32())])
DAYS = ["2026-01-01", "2026-01-02", "2026-02-01", "2027-01-01"]
ROWS: list[Row] = [{"id": f"k{i * 7 % 300}", "day": DAYS[i % 4], "ts": i, "v": i} for i in range(800)]
LATER: list[Row] = [{"id": f"k{i}", "day": DAYS[i % 4], "ts": 1_000 + i, "v": -i} for i in range(100, 400)]
CONFIGS = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"


def arrow(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of two buckets, with base and log files in each partition but the last, which has no rows."""
    with hudi.create_table(
        str(tmp_path / "t"), SCHEMA, record_key=["id"], partition_by=["day"], ordering="ts", buckets=2
    ) as table:
        table.upsert(arrow([row for row in ROWS[:400] if row["day"] != DAYS[3]]))
        table.compact()
        table.upsert(arrow([row for row in ROWS[400:] if row["day"] != DAYS[3]]))
    return tmp_path / "t"


@pytest.fixture
def oracle() -> Oracle:
    made = Oracle(["id"], ["day"], "ts")
    made.upsert([row for row in ROWS if row["day"] != DAYS[3]])
    return made


def assert_holds(folder: Path, oracle: Oracle) -> None:
    rows = arrow(oracle.rows())
    assert_same_rows(read_by_us(folder), rows, "our reader")
    assert_same_rows(without_meta(read_by_hudi_rs(folder)), rows, "hudi-rs")
    with hudi.open_table(str(folder)) as table:
        assert not table.verify().findings


def counts(table: hudi.Table) -> dict[str, int]:
    """How many buckets of each partition have rows."""
    found: dict[str, set[int]] = {}
    for group in table.file_groups():
        found.setdefault(group.partition, set()).add(bucket_of(group.file_id))
    return {partition: len(each) for partition, each in sorted(found.items())}


@pytest.mark.slow
def test_partitions_get_a_number_of_their_own_and_so_do_those_that_come(folder: Path, oracle: Oracle) -> None:
    with hudi.open_table(str(folder)) as table:
        planned = table.rescale(8, partitions="2026-01-*", plan_only=True)
        assert (planned.needed, planned.before, planned.replaced, planned.units) == (True, 2, 4, 4)
        done = table.rescale(8, partitions="2026-01-*")
        assert (done.replaced, done.rows) == (4, sum(row["day"].startswith("2026-01") for row in oracle.rows()))
        assert counts(table) == dict(zip(DAYS, (8, 8, 2), strict=False))
        assert table.rescale(5, partitions="2027-*").instant
        assert not table.rescale(5, partitions="2027-*").needed
    assert_holds(folder, oracle)
    with hudi.open_table(str(folder)) as table:
        table.upsert(arrow(LATER))
        oracle.upsert(LATER)
        assert counts(table) == dict(zip(DAYS, (8, 8, 2, 5), strict=True))
        table.compact()
        assert_holds(folder, oracle)
        table.delete(arrow(LATER[:50]).select(["id", "day", "ts"]))
        oracle.delete([{**row, "ts": row["ts"]} for row in LATER[:50]])
    assert_holds(folder, oracle)


def test_the_newest_rule_counts_and_a_rescale_of_all_forgets_them(folder: Path, oracle: Oracle) -> None:
    with hudi.open_table(str(folder)) as table:
        table.rescale(8, partitions="2026-01-*")
        table.rescale(3, partitions="2026-*")
        assert counts(table) == dict(zip(DAYS, (3, 3, 3), strict=False))
        table.rescale(4, partitions="2026-01-*")
        assert counts(table) == dict(zip(DAYS, (4, 4, 3), strict=False))
        assert_holds(folder, oracle)
        assert table.rescale(2).replaced == 11
        assert table.definition is not None
        assert table.definition.bucket_rules == ()
        table.upsert(arrow(LATER))
        oracle.upsert(LATER)
        assert counts(table) == dict.fromkeys(DAYS, 2)
    assert_holds(folder, oracle)


def test_a_restore_brings_back_the_rules_of_its_time(folder: Path, oracle: Oracle) -> None:
    with hudi.open_table(str(folder)) as table:
        before = table.savepoint("before")
        table.rescale(8, partitions="2026-01-*")
        between = table.savepoint("between")
        table.rescale(3, partitions="*-02-*")
        table.rescale(4)
        table.upsert(arrow(LATER))
        table.restore(between)
        assert counts(table) == dict(zip(DAYS, (8, 8, 2), strict=False))
        table.upsert(arrow(LATER))
        table.restore(before)
        assert table.definition is not None
        assert (table.definition.bucket_rules, table.definition.buckets) == ((), 2)
        assert list((folder / CONFIGS).iterdir()) == []
        table.upsert(arrow(LATER))
    oracle.compact()
    oracle.upsert(LATER)
    assert_holds(folder, oracle)


def test_a_restore_gives_up_the_rules_of_rescales_alone(folder: Path) -> None:
    with hudi.open_table(str(folder)) as table:
        saved = table.savepoint()
        rescaled = table.rescale(8, partitions="2026-01-*").instant
        table.upsert(arrow(LATER))
        table.compact()
        assert len(table.restore(saved).undone) == 3
        _, slots = read_state(table._store, LOG_LAYOUT)
    names = [name for slot in slots for name in slot.names if name.endswith(".hashing_config")]
    assert names == [f"{CONFIGS}/{rescaled}.hashing_config"]


def test_an_overwrite_keeps_the_number_of_its_partition(folder: Path) -> None:
    with hudi.open_table(str(folder)) as table:
        table.rescale(8, partitions="2026-01-*")
        overwriting.overwrite(table, arrow(ROWS), "insert_overwrite_table")
        table.rescale(6, partitions="2026-02-*")
        table.upsert(arrow(LATER))
        assert counts(table) == dict(zip(DAYS, (8, 8, 6, 2), strict=True))
    made = Oracle(["id"], ["day"], "ts")
    made.upsert(ROWS)
    made.upsert(LATER)
    assert_holds(folder, made)


def test_hudi_finds_the_rules_where_it_keeps_them(folder: Path) -> None:
    with hudi.open_table(str(folder)) as table:
        first = table.rescale(8, partitions="2026-01-*").instant
        second = table.rescale(3).instant
    configs = {path.name: json.loads(path.read_bytes()) for path in (folder / CONFIGS).iterdir()}
    assert configs == {
        f"{first}.hashing_config": {
            "expressions": r"^2026-01-[^/]*\z,8",
            "defaultBucketNumber": 2,
            "rule": "regex",
            "version": 1,
            "instant": first,
        },
        f"{second}.hashing_config": {
            "expressions": "(?!),3",
            "defaultBucketNumber": 3,
            "rule": "regex",
            "version": 1,
            "instant": second,
        },
    }


def test_other_programs_learn_the_rules_from_the_settings_that_are_printed(folder: Path) -> None:
    with hudi.open_table(str(folder)) as table:
        table.rescale(8, partitions="2026-01-*")
        for engine in ("spark", "flink"):
            options = table.setup_of(engine).options  # type: ignore[arg-type]
            assert options["hoodie.bucket.index.num.buckets"] == "2"
            assert options["hoodie.bucket.index.partition.expressions"] == r"^2026-01-[^/]*\z,8"
            assert options["hoodie.bucket.index.partition.rule.type"] == "regex"


def test_a_pattern_has_nothing_that_hudi_splits_at(folder: Path) -> None:
    with hudi.open_table(str(folder)) as table:
        table.rescale(4, partitions="a,b;c.d é\U0001f600/*")
        assert table.definition is not None
        assert expressions_of(table.definition) == r"^a\u002cb\u003bc\u002ed\u0020\u00e9\ud83d\ude00/[^/]*\z,4"


@pytest.mark.parametrize(
    ("pattern", "partition", "is_meant"),
    [("a*", "ab", True), ("a*", "a/b", False), ("a*/b", "ax/b", True), ("a.c", "abc", False), ("a", "a\n", False)],
)
def test_a_star_stands_for_anything_but_a_slash(pattern: str, partition: str, is_meant: bool) -> None:
    assert matches(pattern, partition) == is_meant


def test_a_table_without_partitions_takes_no_pattern(tmp_path: Path) -> None:
    table = hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering="ts", buckets=2)
    with table, pytest.raises(OptionError, match="no partitions"):
        table.rescale(4, partitions="a*")
