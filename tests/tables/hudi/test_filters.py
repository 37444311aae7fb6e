"""Filters: what they show, and that what cannot match is not read."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from headgate_tables import hudi
from headgate_tables.hudi.log import parquet_rows
from support.counting import counted
from support.golden import comparable, expected_rows, unpack
from support.tables import as_text, create, keys, rows


def ids(scan: hudi.Scan) -> list[str]:
    return sorted(scan.to_table()["id"].to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    """Base and log rows in two partitions."""
    made = create(tmp_path)
    made.upsert(pa.concat_tables([rows(("a", 1, "x"), ("b", 2, "y")), rows(("c", 3, "z"), part="q")]))
    made.upsert(pa.concat_tables([rows(("a", 5, "new")), rows(("d", 4, "w"), part="q")]))
    return made


FILTERS: list[tuple[pc.Expression, str, str]] = [
    (pc.field("part") == "q", "cd", "q"),
    (pc.field("part") != "q", "ab", "p"),
    (pc.field("part").isin(["q", "r"]), "cd", "q"),
    ((pc.field("part") == "q") & (pc.field("ts") > 3), "d", "q"),
    ((pc.field("part") == "q") | (pc.field("ts") > 4), "acd", "pq"),
    (pc.field("part").is_null(), "", ""),
    (~(pc.field("part") == "p"), "cd", "q"),
    (pc.field("part") > "p", "cd", "q"),
    (pc.starts_with(pc.field("part"), "q"), "cd", "q"),
    (pc.field("ts") > 3, "ad", "pq"),
    (pc.field("note").isin(["x", "y"]), "b", "pq"),
    (pc.field("_hoodie_record_key") == "c", "c", "pq"),
    (pc.field("_hoodie_partition_path") == "q", "cd", "pq"),
    (pc.scalar(True), "abcd", "pq"),
    (pc.scalar(False), "", ""),
]


@pytest.mark.parametrize(("expression", "wanted", "opened"), FILTERS, ids=str)
def test_a_filter_shows_its_rows_and_opens_no_partition_that_cannot_match(
    table: hudi.Table, expression: pc.Expression, wanted: str, opened: str
) -> None:
    reader, store = counted(table.url)
    with store.forgetting():
        assert ids(reader.scan(["id"], filter=expression)) == list(wanted)
    assert {path.partition("/")[0] for path in store.data_files()} == set(opened)


def test_a_filter_is_made_of_the_columns_that_are_shown_and_the_timeline_is_listed_once(table: hudi.Table) -> None:
    reader, store = counted(table.url)
    with store.forgetting():
        scan = reader.scan(["id"], filter=lambda schema: pc.field("ts") > pa.scalar("3").cast(schema.field("ts").type))
    assert store.listed.count(".hoodie/timeline") == 1
    assert ids(scan) == ["a", "d"]
    assert ids(reader.scan(filter=lambda schema: None)) == list("abcd")


@pytest.fixture
def long_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> hudi.Table:
    """One base file of 10 row groups with 100 rows each: ``ts`` 0 to 99, 100 to 199, …, and text that does not compress."""
    monkeypatch.setattr(parquet_rows, "_GROUP_ROWS", 100)
    table = create(tmp_path, buckets=1, partitioned=False)
    table.upsert(rows(*((f"k{number:03}", number, os.urandom(300).hex()) for number in range(1000))))
    return table


def bytes_of_groups(table: hudi.Table, column: str) -> list[range]:
    """Where in the base file the column of each row group lies."""
    (part,) = table.scan().slices()
    file = pq.read_metadata(table.url.removeprefix("file://") + "/" + str(part.base))
    at = file.schema.to_arrow_schema().names.index(column)
    chunks = [file.row_group(group).column(at) for group in range(file.num_row_groups)]
    starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
    return [range(start, start + chunk.total_compressed_size) for start, chunk in zip(starts, chunks, strict=True)]


def groups_read(table: hudi.Table, column: str, ranges: list[tuple[int, int]]) -> list[int]:
    """Row groups of whose column the larger part was read, not counting the tail that is fetched for the footer."""
    end = max(stop for _, stop in ranges)
    ranges = [(start, stop) for start, stop in ranges if stop != end]
    found = []
    for group, wanted in enumerate(bytes_of_groups(table, column)):
        covered = set().union(*(range(max(start, wanted.start), min(stop, wanted.stop)) for start, stop in ranges))
        if 2 * len(covered) > len(wanted):
            found.append(group)
    return found


def test_a_filter_reads_only_row_groups_that_can_match(long_table: hudi.Table) -> None:
    reader, store = counted(long_table.url)
    for expression, wanted, groups in (
        (pc.field("ts") == 250, ["k250"], [2]),
        ((pc.field("ts") >= 299) & (pc.field("ts") <= 300), ["k299", "k300"], [2, 3]),
        (pc.field("id") == "k777", ["k777"], [7]),
        (pc.field("ts") > 5000, [], []),
    ):
        with store.forgetting():
            assert ids(reader.scan(["id", "note"], filter=expression)) == wanted
        assert groups_read(long_table, "note", store.ranges) == groups
    with store.forgetting():
        assert reader.scan(["id", "note"]).to_table().num_rows == 1000
    assert groups_read(long_table, "note", store.ranges) == list(range(10))


def test_columns_that_nobody_asked_for_are_not_read(long_table: hudi.Table) -> None:
    reader, store = counted(long_table.url)
    with store.forgetting():
        assert reader.scan(["ts"]).to_table().num_rows == 1000
    assert groups_read(long_table, "note", store.ranges) == []


def test_a_late_log_row_stays_beaten_by_a_base_row_that_the_filter_leaves_out(long_table: hudi.Table) -> None:
    """The base row of k500 has ts 500. A late version with ts 250 matches the filter, but is not the row's newest."""
    long_table.upsert(rows(("k500", 250, "late"), ("k501", 900, "newer"), ("fresh", 251, "fresh")))
    reader, store = counted(long_table.url)
    narrow = (pc.field("ts") >= 240) & (pc.field("ts") <= 260)
    with store.forgetting():
        found = reader.scan(["id", "ts"], filter=narrow).to_table().to_pylist()
    assert as_text(found) == as_text([*({"id": f"k{n}", "ts": n} for n in range(240, 261)), {"id": "fresh", "ts": 251}])
    assert groups_read(long_table, "note", store.ranges) == [], "keys and ordering of other row groups are enough"
    assert ids(reader.scan(filter=pc.field("ts") == 500)) == ["k500"]


def test_a_base_row_that_matches_is_not_shown_when_its_newer_version_does_not(long_table: hudi.Table) -> None:
    long_table.upsert(rows(("k250", 900, "moved away")))
    long_table.delete(keys(("k251", 900)).drop_columns(["part"]).append_column("part", pa.array(["p"])))
    reader, _ = counted(long_table.url)
    assert ids(reader.scan(filter=(pc.field("ts") >= 249) & (pc.field("ts") <= 252))) == ["k249", "k252"]
    assert ids(reader.scan(filter=pc.field("note") == "moved away")) == ["k250"]


def test_a_filter_on_a_column_that_older_files_lack_sees_null_in_them(tmp_path: Path) -> None:
    name = "h120_v9_mor_schema_evolution"
    wanted = expected_rows(name)
    table = hudi.open_table(unpack(name, tmp_path))
    for column in table.schema.names:
        for expression in (pc.field(column).is_null(), ~pc.field(column).is_null()):
            found = table.scan(meta_columns=True, filter=expression).to_table()
            assert comparable(found.to_pylist()) == comparable(wanted.filter(expression).select(found.column_names).to_pylist())
