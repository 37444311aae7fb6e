"""What a scan shows and what it reads for that: columns, partitions, filters, snapshots."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headgate_tables import hudi
from headgate_tables.hudi.schema.meta_columns import META_COLUMNS
from support.counting import counted
from support.golden import unpack
from support.names import LITERAL_NAMES
from support.tables import SCHEMA, as_text, create, keys, rows


def ids(scan: hudi.Scan) -> list[str]:
    return sorted(scan.to_table()["id"].to_pylist())


# --- columns ---


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    """Base and log rows in two partitions."""
    made = create(tmp_path)
    made.upsert(pa.concat_tables([rows(("a", 1, "x"), ("b", 2, "y")), rows(("c", 3, "z"), part="q")]))
    made.upsert(pa.concat_tables([rows(("a", 5, "new")), rows(("d", 4, "w"), part="q")]))
    return made


def test_columns_come_in_the_order_asked_for(table: hudi.Table) -> None:
    scan = table.scan(["note", "id"])
    assert scan.schema == pa.schema([SCHEMA.field("note"), SCHEMA.field("id")])
    found = scan.to_table()
    assert found.schema == scan.schema == scan.to_reader().schema
    assert as_text(found.to_pylist()) == as_text(
        [{"note": n, "id": i} for i, n in (("a", "new"), ("b", "y"), ("c", "z"), ("d", "w"))]
    )


def test_all_columns_are_the_tables_own_and_meta_columns_come_on_request(table: hudi.Table) -> None:
    assert table.scan().to_table().schema.names == SCHEMA.names == table.schema.names
    found = table.scan(meta_columns=True).to_table()
    assert found.schema.names == [*META_COLUMNS, *SCHEMA.names]
    by_id = {row["id"]: row for row in found.to_pylist()}
    first, second = (info.instant for info in table.commits())
    assert {name: row["_hoodie_commit_time"] for name, row in by_id.items()} == {"a": second, "b": first, "c": first, "d": second}
    assert {(row["_hoodie_record_key"], row["_hoodie_partition_path"]) for row in by_id.values()} == {
        (row["id"], row["part"]) for row in by_id.values()
    }


def test_meta_columns_can_be_asked_for_by_name_and_stand_before_others_otherwise(table: hudi.Table) -> None:
    assert table.scan(["ts", "_hoodie_record_key"]).to_table().column_names == ["ts", "_hoodie_record_key"]
    assert table.scan(["ts"], meta_columns=True).to_table().column_names == [*META_COLUMNS, "ts"]
    assert table.scan([], meta_columns=True).to_table().column_names == [*META_COLUMNS]


def test_neither_key_nor_ordering_need_be_asked_for(table: hudi.Table) -> None:
    assert sorted(table.scan(["note"]).to_table()["note"].to_pylist()) == ["new", "w", "y", "z"]
    assert sorted(table.scan(["note"], filter=pc.field("ts") > 3).to_table()["note"].to_pylist()) == ["new", "w"]


def test_a_reader_and_a_table_give_the_same_rows_as_often_as_asked(table: hudi.Table) -> None:
    scan = table.scan()
    assert (
        as_text(scan.to_reader().read_all().to_pylist())
        == as_text(scan.to_table().to_pylist())
        == as_text(scan.to_table().to_pylist())
    )


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    table = create(tmp_path)
    assert table.scan().to_table() == SCHEMA.empty_table()
    assert list(table.scan(["id"]).to_reader()) == []


# --- partitions ---


def test_only_files_of_the_selected_partitions_are_opened(table: hudi.Table) -> None:
    reader, store = counted(table.url)
    for partitions, wanted in (
        [["q"], ["c", "d"]],
        [[{"part": "q"}], ["c", "d"]],
        [["p", {"part": "q"}], ["a", "b", "c", "d"]],
        [["no"], []],
        [[], []],
    ):
        with store.forgetting():
            assert ids(reader.scan(["id"], partitions)) == wanted  # type: ignore[arg-type]
        assert {path.partition("/")[0] for path in store.data_files()} == {("abcd".index(i) > 1 and "q") or "p" for i in wanted}
    assert {part.partition for part in reader.scan(partitions=["q"]).slices()} == {"q"}


def test_partitions_are_selected_by_typed_values(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("day", pa.date32()), ("hour", pa.int32()), ("live", pa.bool_())])
    url = str(tmp_path / "table")
    table = hudi.create_table(url, schema, record_key="id", partition_by=["day", "hour", "live"], buckets=1, hive_style=True)
    days = [dt.date(2026, 11, 20), dt.date(2026, 11, 21)]
    table.upsert(
        pa.Table.from_pylist(
            [{"id": f"{d.day}-{h}-{v}", "day": d, "hour": h, "live": v} for d in days for h in (1, 10) for v in (True, False)],
            schema,
        )
    )
    assert ids(table.scan(partitions=["day=2026-11-20/hour=10/live=true"])) == ["20-10-True"]
    assert ids(table.scan(partitions=[{"day": days[0], "hour": 10, "live": True}])) == ["20-10-True"]
    assert ids(table.scan(partitions=[{"hour": 1, "live": False}])) == ["20-1-False", "21-1-False"]
    assert ids(table.scan(partitions=[{"day": days[1], "live": True}, {"day": days[1], "hour": 1}])) == [
        "21-1-False",
        "21-1-True",
        "21-10-True",
    ]
    reader, store = counted(url)
    with store.forgetting():
        assert ids(reader.scan(filter=(pc.field("day") > days[0]) & (pc.field("hour") < 5))) == ["21-1-False", "21-1-True"]
    assert {path.rpartition("/")[0] for path in store.data_files()} == {
        "day=2026-11-21/hour=1/live=false",
        "day=2026-11-21/hour=1/live=true",
    }


@pytest.mark.parametrize("hive_style", [False, True])
def test_odd_partition_values_are_found_again(tmp_path: Path, hive_style: bool) -> None:
    values = [*LITERAL_NAMES, "a/b", "a=b", "100%", "%2E%2E", "...", "_hidden", ".dot", ".tmp-x", " ", "x\ty", "ｆｕｌｌ", "café"]
    table = create(tmp_path, buckets=1, hive_style=hive_style)
    table.upsert(pa.concat_tables([rows((f"{number}", 1, "x"), part=value) for number, value in enumerate(values)]))
    log = table._opened.log
    assert log is not None
    log.fold()  # no slot says any more where files are
    reader, store = counted(table.url)
    assert sorted(reader.scan().to_table()["part"].to_pylist()) == sorted(values)
    for number, value in enumerate(values):
        for options in ({"partitions": [{"part": value}]}, {"filter": pc.field("part") == value}):
            with store.forgetting():
                assert ids(reader.scan(**options)) == [f"{number}"], value  # type: ignore[arg-type]
            assert len(store.data_files()) == 1, value


def test_the_partition_column_of_a_time_format_is_no_reason_to_leave_rows_out(tmp_path: Path) -> None:
    """A table of Hudi's timestamp key generator: its paths are dates made of the column's milliseconds, not its values."""
    path = Path(unpack("h120_v8_mor_bucket_part2_url", tmp_path))
    properties = path / ".hoodie/hoodie.properties"
    properties.write_bytes(properties.read_bytes().replace(b"keygenerator.type=COMPLEX", b"keygenerator.type=TIMESTAMP"))
    table = hudi.open_table(str(path))
    reader, store = counted(table.url)
    with store.forgetting():
        assert reader.scan(filter=pc.field("region") == "nowhere").to_table().num_rows == 0
    assert {path.rpartition("/")[0] for path in store.data_files()} == {part.partition for part in table.scan().slices()}


# --- snapshots ---


def test_a_scan_made_before_later_commits_shows_what_was_then(table: hudi.Table) -> None:
    reader = hudi.open_table(table.url)
    for handle in (table, reader):
        before = handle.scan()
        wanted = as_text(before.to_table().to_pylist())
        stream = before.to_reader()
        first = stream.read_next_batch()
        table.upsert(rows(("a", 100 + len(table.commits()), "later"), (f"e{len(table.commits())}", 1, "later")))
        table.delete(keys(("b", 100)))
        table.upsert(rows(("f", 1, "later"), part="new"))
        assert as_text([*first.to_pylist(), *stream.read_all().to_pylist()]) == wanted
        assert as_text(before.to_table().to_pylist()) == wanted
        assert as_text(handle.scan().to_table().to_pylist()) != wanted


def test_a_commit_of_another_handle_is_taken_in_without_listing_the_table_again(table: hudi.Table) -> None:
    reader, store = counted(table.url)
    assert len(ids(reader.scan())) == 4
    for number in range(3):
        result = table.upsert(rows((f"new{number}", 1, "x"), part=f"part{number}"))
        with store.forgetting():
            assert len(ids(reader.scan())) == 5 + number
        assert store.listed == [".hoodie/timeline"]
        news = f".hoodie/timeline/{result.instant}_{result.completion}.deltacommit"
        assert [path for path in store.opened if path.startswith(".hoodie")] == [news]
    with store.forgetting():
        reader.scan()
    assert (store.listed, store.opened) == ([".hoodie/timeline"], [])


def test_a_commit_of_the_same_handle_is_known_without_reading_it(table: hudi.Table) -> None:
    writer, store = counted(table.url)
    writer.upsert(rows(("e", 1, "x")))
    assert len(ids(writer.scan())) == 5
    with store.forgetting():
        result = writer.upsert(rows(("f", 1, "x"), part="new"))
        assert len(ids(writer.scan())) == 6
    assert not {folder for folder in store.listed if not folder.startswith(".hoodie")}
    assert not [path for path in store.opened if path.endswith(f"{result.completion}.deltacommit")]


def test_commits_and_file_groups_say_what_is_there(table: hudi.Table) -> None:
    results = [table.upsert(rows(("e", 1, "x"))), table.delete(keys(("e", 2)))]
    infos = table.commits()
    assert [(info.instant, info.completion) for info in infos[-2:]] == [(result.instant, result.completion) for result in results]
    assert {info.action for info in infos} == {"deltacommit"}
    groups = hudi.open_table(table.url).file_groups()
    assert [(group.partition, group.file_id) for group in groups] == sorted((group.partition, group.file_id) for group in groups)
    slices = [part for group in groups for part in group.slices()]
    on_disk = {path.name for part in "pq" for path in Path(table.url.removeprefix("file://"), part).iterdir()}
    named = {name for part in slices for name in [part.base, *(log.name for log in part.logs)] if name}
    assert named == on_disk - {".hoodie_partition_metadata"}
    assert sum(len(part.logs) for part in slices) == len(named) - sum(part.base is not None for part in slices)
