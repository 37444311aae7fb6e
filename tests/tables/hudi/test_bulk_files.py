"""Base files of a bulk load, without Spark: one name for each bucket, whichever run of a task writes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError, FixCall, TransactionError
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.writing import BulkFiles, LoadTask
from headgate_tables.hudi.services.bulk import base_files
from headgate_tables.hudi.services.compaction import base_writer
from headgate_tables.opening import open_folder
from headgate_tables.system import System
from headgate_tables.writing import bulk_files
from support.oracle import Oracle, Row
from support.readers import read_by_hudi_rs, read_by_us, without_meta
from support.same_rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int32())])
ROWS: list[Row] = [{"id": f"k{i * 7 % 50}", "part": "ab"[i % 2], "ts": i, "v": i} for i in range(80)]
PROCESS = "f" * 32


def arrow(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[hudi.Table]:
    with hudi.create_table(
        str(tmp_path / "t"), SCHEMA, record_key=["id"], partition_by=["part"], ordering="ts", buckets=2
    ) as made:
        yield made


def files_of(table: hudi.Table, instant: str, *, task: int = 0) -> BulkFiles:
    """A task of a load, as a process of its own sees it."""
    definition = table.definition
    assert definition is not None
    folder = open_folder(table.url, None, System.real().ids)
    load_task = LoadTask(instant, table.epoch, PROCESS, task)
    return bulk_files(folder, definition, load_task, settings=table.settings.to_texts())


def expected(rows: list[Row]) -> pa.Table:
    oracle = Oracle(["id"], ["part"], "ts")
    oracle.upsert(rows)
    return arrow(oracle.rows())


def load(table: hudi.Table, rows: list[Row]) -> tuple[str, list[WriteStatus]]:
    with table.transaction() as transaction:
        transaction.announce_bulk_load()
        statuses, _ = files_of(table, transaction.instant).write(arrow(rows))
        assert not transaction.find_false(statuses)
        transaction.add(statuses)
        return transaction.commit().instant, statuses


def local(url: str, path: str) -> Path:
    return Path(url.removeprefix("file://")) / path


def test_loaded_rows_are_the_tables_and_take_upserts(table: hudi.Table, tmp_path: Path) -> None:
    load(table, ROWS)
    assert_same_rows(read_by_us(tmp_path / "t"), expected(ROWS), "our reader")
    assert_same_rows(without_meta(read_by_hudi_rs(tmp_path / "t")), expected(ROWS), "hudi-rs")
    more: list[Row] = [{"id": f"k{i}", "part": "a", "ts": 1_000, "v": -i} for i in range(40, 60)]
    table.upsert(arrow(more))
    assert_same_rows(read_by_us(tmp_path / "t"), expected([*ROWS, *more]), "our reader")
    assert_same_rows(without_meta(read_by_hudi_rs(tmp_path / "t")), expected([*ROWS, *more]), "hudi-rs")
    assert not table.verify().findings


def test_rows_of_a_file_are_sorted_by_key_in_row_groups_of_bounded_size(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate_tables.hudi.services.bulk.task_files.GROUP_ROWS", 7)
    monkeypatch.setattr(base_writer, "GROUP_ROWS", 7)
    _, statuses = load(table, ROWS)
    assert len(statuses) == 4
    seen: set[str] = set()
    for status in statuses:
        file = pq.ParquetFile(local(table.url, status.stat.path))
        keys = file.read(["_hoodie_record_key"]).column(0).to_pylist()
        assert keys == sorted(keys)
        groups = [file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)]
        assert max(groups) <= 7 < sum(groups)
        seen.update(file.read(["_hoodie_commit_seqno"]).column(0).to_pylist())
    assert len(seen) == expected(ROWS).num_rows


def test_beaten_rows_are_counted(table: hudi.Table) -> None:
    with table.transaction() as transaction:
        transaction.announce_bulk_load()
        statuses, beaten = files_of(table, transaction.instant).write(arrow(ROWS))
        assert sum(status.stat.rows for status in statuses) == expected(ROWS).num_rows
        assert beaten == len(ROWS) - expected(ROWS).num_rows > 0
        transaction.rollback()


def test_a_second_run_reports_the_file_of_the_first_even_in_another_order_of_rows(table: hudi.Table) -> None:
    with table.transaction() as transaction:
        transaction.announce_bulk_load()
        first, _ = files_of(table, transaction.instant).write(arrow(ROWS))
        again, _ = files_of(table, transaction.instant).write(arrow(ROWS[::-1]))
        assert again == first
        transaction.rollback()


def test_of_two_runs_at_once_one_creates_each_file_and_both_report_it(table: hudi.Table, tmp_path: Path) -> None:
    with table.transaction() as transaction:
        transaction.announce_bulk_load()
        runs = [files_of(table, transaction.instant) for _ in range(4)]
        with ThreadPoolExecutor(len(runs)) as pool:
            reports = [statuses for statuses, _ in pool.map(lambda run: run.write(arrow(ROWS)), runs)]
        assert all(report == reports[0] for report in reports)
        staged = [path.name for path in (tmp_path / "t/.hoodie/.headgate/stage").rglob("*") if path.is_file()]
        assert len(staged) == len(reports[0])
        transaction.add(reports[0])
    assert_same_rows(read_by_us(tmp_path / "t"), expected(ROWS), "our reader")


def test_the_loser_of_a_race_reports_the_bytes_of_the_winner(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    tied = [{**row, "ts": 1} for row in ROWS]  # any of a key's rows may be written, so the two runs write different ones
    with table.transaction() as transaction:
        transaction.announce_bulk_load()
        winner, loser = files_of(table, transaction.instant), files_of(table, transaction.instant)
        reports: list[list[WriteStatus]] = []
        encode = base_files.BulkFiles._encode

        def encode_late(self: base_files.BulkFiles, *arguments: Any) -> None:
            if self is loser and not reports:
                reports.append(winner.write(arrow(tied))[0])
            encode(self, *arguments)

        monkeypatch.setattr(base_files.BulkFiles, "_encode", encode_late)
        lost, _ = loser.write(arrow(tied[::-1]))
        assert [lost] == reports
        transaction.rollback()


def test_a_run_that_comes_after_the_commit_changes_nothing(table: hudi.Table, tmp_path: Path) -> None:
    instant, statuses = load(table, ROWS)
    late, _ = files_of(table, instant).write(arrow(ROWS))
    assert late == statuses
    assert_same_rows(read_by_us(tmp_path / "t"), expected(ROWS), "our reader")
    assert not table.verify().findings


def test_a_second_run_that_gets_other_rows_is_refused(table: hudi.Table) -> None:
    with table.transaction() as transaction:
        transaction.announce_bulk_load()
        files_of(table, transaction.instant).write(arrow(ROWS))
        other = [{**row, "id": row["id"].replace("k1", "q1")} for row in ROWS]
        with pytest.raises(FixCall, match="other rows"):
            files_of(table, transaction.instant).write(arrow(other))
        transaction.rollback()


def test_a_damaged_file_under_the_name_is_not_taken_for_another_runs(table: hudi.Table) -> None:
    with table.transaction() as transaction:
        transaction.announce_bulk_load()
        statuses, _ = files_of(table, transaction.instant).write(arrow(ROWS))
        local(table.url, statuses[0].file.stage).write_bytes(b"PAR1")
        with pytest.raises(CorruptFileError, match="is taken"):
            files_of(table, transaction.instant).write(arrow(ROWS))
        transaction.rollback()


def test_a_table_with_rows_is_refused_and_stays_as_it_is(table: hudi.Table, tmp_path: Path) -> None:
    table.upsert(arrow(ROWS[:5]))
    with pytest.raises(TransactionError, match="empty table"), table.transaction() as transaction:
        transaction.announce_bulk_load()
    assert_same_rows(read_by_us(tmp_path / "t"), expected(ROWS[:5]), "our reader")
    table.upsert(arrow(ROWS))
    assert_same_rows(read_by_us(tmp_path / "t"), expected(ROWS), "our reader")


def test_a_load_is_alone(table: hudi.Table) -> None:
    older, load = table.transaction(), table.transaction()
    with pytest.raises(TransactionError, match="an older one is open"):
        load.announce_bulk_load()
    older.announce()
    with pytest.raises(TransactionError, match="has begun to write"):
        older.announce_bulk_load()
    load.rollback()
    older.rollback()


def test_what_a_task_reports_is_compared_with_what_is_there(table: hudi.Table) -> None:
    with table.transaction() as transaction:
        transaction.announce_bulk_load()
        statuses, _ = files_of(table, transaction.instant).write(arrow(ROWS))
        right = statuses[0]
        wrong = [
            dataclasses.replace(right, file=right.file._replace(size=1)),
            dataclasses.replace(right, stat=dataclasses.replace(right.stat, name=statuses[1].stat.name)),
            dataclasses.replace(right, stat=dataclasses.replace(right.stat, log_version=1)),
        ]
        assert [dict(transaction.find_false([each])) != {} for each in [right, *wrong]] == [False, True, True, True]
        assert "reported twice" in transaction.find_false([right, right])[1]
        transaction.rollback()


def test_base_files_are_refused_outside_of_a_load(table: hudi.Table) -> None:
    with table.transaction() as transaction:
        transaction.announce()
        statuses, _ = files_of(table, transaction.instant).write(arrow(ROWS))
        assert set(transaction.find_false(statuses)) == set(range(len(statuses)))
        transaction.rollback()


def test_a_load_whose_owner_died_is_invisible_and_the_next_one_starts_over(table: hudi.Table, tmp_path: Path) -> None:
    dead = hudi.open_table(table.url).transaction()
    dead.announce_bulk_load()
    with hudi.open_table(table.url) as zombie:
        zombie_files = files_of(zombie, dead.instant)
    zombie_files.write(arrow(ROWS[:10]))
    assert read_by_us(tmp_path / "t").num_rows == 0
    with hudi.open_table(table.url) as successor:
        load(successor, ROWS)
        zombie_files.write(arrow(ROWS[10:20]))  # a task that outlives its driver
        assert_same_rows(read_by_us(tmp_path / "t"), expected(ROWS), "our reader")
        assert not successor.verify().findings
    with hudi.open_table(table.url) as later:
        later.upsert(arrow(ROWS[:1]))
    left = [path.name for path in (tmp_path / "t/.hoodie").rglob("*") if dead.instant in path.name]
    assert left == []
