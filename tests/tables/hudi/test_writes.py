"""Upserts, deletes and transactions, read back by our reader and by hudi-rs."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import DeposedError, ForeignWriterError, MetadataTableError, TransactionError
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse, render
from support.systems import SetClock, system
from support.tables import SCHEMA, create, keys, notes, rows


def test_one_call_is_one_commit_with_its_counts(tmp_path: Path) -> None:
    table = create(tmp_path)
    result = table.upsert(rows(("a", 1, "x"), ("b", 1, "x"), ("a", 2, "y")))
    assert (result.upserted, result.superseded, result.deleted) == (2, 1, 0)
    assert [info.instant for info in table.commits()] == [result.instant]
    assert result.completion > result.instant
    assert notes(table) == {"a": "y", "b": "x"}


def test_event_time_the_larger_ordering_value_wins_and_a_tie_goes_to_the_later_call(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(("a", 5, "first"), ("b", 5, "first"), ("c", 5, "first")))
    table.upsert(rows(("a", 4, "late"), ("b", 5, "tie"), ("c", 6, "newer")))
    assert notes(table) == {"a": "first", "b": "tie", "c": "newer"}
    table.upsert(rows(("c", 5, "late again"), ("a", 6, "newer")))
    assert notes(table) == {"a": "newer", "b": "tie", "c": "newer"}


def test_commit_time_the_later_call_wins(tmp_path: Path) -> None:
    table = create(tmp_path, ordering=None)
    table.upsert(rows(("a", 5, "first"), ("b", 5, "first")))
    table.upsert(rows(("a", 1, "second")))
    table.delete(keys(("b", 0)))
    assert notes(table) == {"a": "second"}
    table.upsert(rows(("b", 0, "back")))
    assert notes(table) == {"a": "second", "b": "back"}


def test_de1_a_delete_obeys_event_time_like_any_row(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(("a", 5, "x"), ("b", 5, "x"), ("c", 5, "x")))
    assert table.delete(keys(("a", 4), ("b", 5), ("c", 6), ("nobody", 1))).deleted == 4
    assert notes(table) == {"a": "x"}
    table.upsert(rows(("b", 6, "back"), ("c", 5, "too late")))
    assert notes(table) == {"a": "x", "b": "back"}


def test_a_delete_before_its_row_holds_back_an_older_one(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.delete(keys(("a", 5)))
    table.upsert(rows(("a", 4, "too old")))
    assert notes(table) == {}
    table.upsert(rows(("a", 5, "same time")))
    assert notes(table) == {"a": "same time"}


def test_several_calls_in_one_transaction_apply_in_their_order(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=1)
    with table.transaction() as transaction:
        transaction.upsert(rows(("a", 1, "first"), ("b", 1, "first")))
        transaction.delete(keys(("b", 1)))
        transaction.upsert(rows(("a", 1, "second")))
        transaction.upsert(rows(("c", 1, "third")))
        assert table.scan().to_table().num_rows == 0
    assert notes(table) == {"a": "second", "c": "third"}
    assert len(table.commits()) == 1


def test_a_transaction_that_fails_leaves_nothing_and_the_next_one_commits(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(("a", 1, "x")))
    transaction = table.transaction()

    def fail() -> None:
        with transaction:
            transaction.upsert(rows(("b", 1, "x")))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert notes(table) == {"a": "x"}
    table.upsert(rows(("c", 1, "x")))
    assert notes(table) == {"a": "x", "c": "x"}
    names = [name for _, _, files in os.walk(tmp_path / "table") for name in files]
    assert not [name for name in names if transaction.instant in name], "a dead instant left files behind"
    assert table.verify().ok


def test_two_open_transactions_commit_in_instant_order_and_share_new_groups(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=1)
    older, newer = table.transaction(), table.transaction()
    newer.upsert(rows(("a", 1, "newer"), ("n", 1, "newer")))
    older.upsert(rows(("a", 1, "older"), ("o", 1, "older")))
    with pytest.raises(TransactionError):
        newer.commit()
    with pytest.raises(TransactionError):
        table.transaction()
    older.commit()
    newer.commit()
    assert notes(table) == {"a": "newer", "n": "newer", "o": "older"}
    assert len({group.file_id for group in table.file_groups()}) == 1


def test_an_older_transaction_that_lapses_takes_nothing_of_the_newer_with_it(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=1)
    older, newer = table.transaction(), table.transaction()
    older.upsert(rows(("a", 1, "older")))
    newer.upsert(rows(("a", 1, "newer")))
    older.rollback()
    newer.commit()
    table.upsert(rows(("b", 1, "next")))
    assert notes(table) == {"a": "newer", "b": "next"}


def test_of_two_handles_that_write_one_is_deposed_and_nothing_is_lost(tmp_path: Path) -> None:
    first = create(tmp_path)
    second = hudi.open_table(first.url)
    first.upsert(rows(("a", 1, "first")))
    second.upsert(rows(("b", 1, "second")))
    for _ in range(2):
        with pytest.raises(DeposedError, match="took the table over"):
            first.upsert(rows(("c", 1, "first")))
    second.upsert(rows(("d", 1, "second")))
    assert notes(second) == {"a": "first", "b": "second", "d": "second"}
    assert notes(first) == notes(second)
    third = hudi.open_table(first.url)
    third.upsert(rows(("c", 1, "third")))
    assert notes(third) == {"a": "first", "b": "second", "c": "third", "d": "second"}
    assert third.verify().ok


def test_tm1_two_commits_in_one_millisecond_and_a_clock_set_back_between_two(tmp_path: Path) -> None:
    clock = SetClock()
    table = create(tmp_path, buckets=1, system=system(clock))
    table.upsert(rows(("a", 1, "first")))
    table.upsert(rows(("a", 1, "second")))
    clock.now -= 4_000
    table.upsert(rows(("a", 1, "third")))
    assert notes(table) == {"a": "third"}
    times = [time for info in table.commits() for time in (info.instant, info.completion)]
    assert len(set(times)) == 6
    completions = [info.completion for info in table.commits()]
    assert completions == sorted(completions)


def test_opening_and_reading_write_nothing(tmp_path: Path) -> None:
    create(tmp_path).upsert(rows(("a", 1, "x")))
    before = snapshot(tmp_path)
    table = hudi.open_table(f"file://{tmp_path}/table")
    assert notes(table) == {"a": "x"}
    assert table.commits()
    assert table.file_groups()
    assert table.verify().ok
    assert snapshot(tmp_path) == before


def test_a_reader_sees_new_commits_of_another_handle(tmp_path: Path) -> None:
    writer = create(tmp_path)
    reader = hudi.open_table(writer.url)
    for number in range(4):
        writer.upsert(rows((f"k{number}", 1, "x"), part=f"p{number % 2}"))
        assert reader.scan().to_table().num_rows == number + 1


def test_f1_an_instant_that_no_slot_reserved_makes_the_table_read_only_for_us(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(("a", 1, "x")))
    foreign = tmp_path / "table/.hoodie/timeline/20990101000000000.deltacommit.requested"
    foreign.touch()
    slots = os.listdir(tmp_path / "table/.hoodie/.headgate/slot")
    for handle in (table, hudi.open_table(table.url)):
        with pytest.raises(ForeignWriterError, match="20990101000000000"):
            handle.upsert(rows(("b", 1, "x")))
    assert os.listdir(tmp_path / "table/.hoodie/.headgate/slot") == slots
    foreign.unlink()
    hudi.open_table(table.url).upsert(rows(("b", 1, "x")))


def test_stray_files_on_the_timeline_are_skipped(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(("a", 1, "x")))
    (tmp_path / "table/.hoodie/timeline/.20260101000000000.deltacommit.crc").touch()
    (tmp_path / "table/.hoodie/timeline/notes.txt").touch()
    table.upsert(rows(("b", 1, "x")))
    assert table.scan().to_table().num_rows == 2


def add_metadata_table(tmp_path: Path) -> None:
    """As a Spark job with default settings leaves the properties and the folder."""
    path = tmp_path / "table" / PROPERTIES_PATH
    properties = parse(path.read_bytes(), "") | {"hoodie.table.metadata.partitions": "column_stats,files"}
    path.write_bytes(render(properties, "Updated"))
    (tmp_path / "table/.hoodie/metadata/files").mkdir(parents=True)


def test_a_metadata_table_that_appears_is_noticed_before_the_next_commit(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(("a", 1, "x")))
    add_metadata_table(tmp_path)
    for handle in (table, hudi.open_table(table.url)):
        with pytest.raises(MetadataTableError, match="metadata_table='remove'"):
            handle.upsert(rows(("b", 1, "x")))
    assert len(table.commits()) == 1


def test_a_metadata_table_of_which_the_properties_say_nothing_yet_is_noticed_before_the_next_commit(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(("a", 1, "x")))
    properties = tmp_path / "table/.hoodie/metadata/.hoodie/hoodie.properties"
    properties.parent.mkdir(parents=True)
    properties.write_bytes(b"hoodie.table.name=x_metadata\n")
    with pytest.raises(MetadataTableError, match="metadata_table='remove'"):
        table.upsert(rows(("b", 1, "x")))


def test_readers_stop_trusting_a_metadata_table_before_it_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = create(tmp_path).url
    add_metadata_table(tmp_path)
    table = hudi.open_table(url, metadata_table="remove")
    real = table._store.delete_folder

    def delete_folder(folder: str) -> None:
        assert b"metadata.partitions" not in (tmp_path / "table" / PROPERTIES_PATH).read_bytes()
        real(folder)

    monkeypatch.setattr(table._store, "delete_folder", delete_folder)
    table.upsert(rows(("a", 1, "x")))
    assert not (tmp_path / "table/.hoodie/metadata").exists()


def test_a_rollback_leaves_nothing_in_the_stage(tmp_path: Path) -> None:
    table = create(tmp_path)
    transaction = table.transaction()
    transaction.upsert(rows(("a", 1, "x"), ("b", 1, "x")))
    stage = tmp_path / "table/.hoodie/.headgate/stage"
    assert [path for path in stage.rglob("*") if path.is_file()]
    transaction.rollback()
    assert [path for path in stage.rglob("*") if path.is_file()] == []


def test_a_metadata_table_is_removed_when_the_setting_says_so(tmp_path: Path) -> None:
    url = create(tmp_path).url
    add_metadata_table(tmp_path)
    table = hudi.open_table(url, metadata_table="remove")
    table.upsert(rows(("a", 1, "x")))
    assert notes(table) == {"a": "x"}
    assert not (tmp_path / "table/.hoodie/metadata").exists()
    assert b"metadata.partitions" not in (tmp_path / "table" / PROPERTIES_PATH).read_bytes()


def test_a_table_whose_properties_were_not_published_opens_and_heals(tmp_path: Path) -> None:
    url = create(tmp_path).url
    (tmp_path / "table" / PROPERTIES_PATH).unlink()
    table = hudi.open_table(url)
    assert table.scan().to_table().num_rows == 0
    table.upsert(rows(("a", 1, "x")))
    assert notes(table) == {"a": "x"}


@pytest.mark.parametrize(
    "nothing",
    [SCHEMA.empty_table(), pa.Table.from_batches([], SCHEMA), pa.RecordBatchReader.from_batches(SCHEMA, [])],
    ids=["a chunk without rows", "no chunk", "a stream without a batch"],
)
def test_a_call_without_rows_makes_no_commit(nothing: pa.Table | pa.RecordBatchReader, tmp_path: Path) -> None:
    table = create(tmp_path)
    assert table.upsert(nothing).instant == ""
    assert table.commits() == []
    assert not (tmp_path / "table" / LOG_LAYOUT.slot_path(2)).exists()


def test_a_stream_of_batches_is_written_as_one_commit(tmp_path: Path) -> None:
    table = create(tmp_path)
    batches = [rows((f"k{n}", 1, "x"), (f"k{n + 1}", 2, "y")).to_batches()[0] for n in range(0, 20, 2)]
    assert table.upsert(pa.RecordBatchReader.from_batches(SCHEMA, batches)).upserted == 20
    assert len(notes(table)) == 20
    assert len(table.commits()) == 1


def snapshot(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}
