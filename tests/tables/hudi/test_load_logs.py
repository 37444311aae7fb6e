"""Log files of a live load, without Spark: one name for each bucket, whichever run of a task writes it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError, FixCall
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.writing import BulkFiles, LoadTask
from headgate_tables.hudi.log.reader import DeleteBlock, RowsBlock, read_log_file
from headgate_tables.hudi.services.bulk import log_files as load_logs
from headgate_tables.opening import open_folder
from headgate_tables.system import System
from headgate_tables.writing import log_files
from support.counting import CountingStore
from support.oracle import Oracle, Row
from support.readers import read_by_hudi_rs, read_by_us, without_meta
from support.same_rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int32())])
OLD: list[Row] = [{"id": f"k{i}", "part": "ab"[i % 2], "ts": 50, "v": i} for i in range(60)]
ROWS: list[Row] = [{"id": f"k{i * 7 % 90}", "part": "ab"[i % 90 % 2], "ts": i, "v": -i} for i in range(120)]
PROCESS = "f" * 32


def arrow(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[hudi.Table]:
    made = hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key="id", partition_by="part", ordering="ts", buckets=2)
    with made:
        made.upsert(arrow(OLD))
        yield made


def files_of(table: hudi.Table, instant: str, *, deletes: bool = False) -> BulkFiles:
    """A task of a load, as a process of its own sees it."""
    definition = table.definition
    assert definition is not None
    folder = open_folder(table.url, None, System.real().ids)
    return log_files(folder, definition, LoadTask(instant, table.epoch, PROCESS, 0), deletes=deletes)


def load(table: hudi.Table, rows: pa.Table, *, deletes: bool = False) -> list[WriteStatus]:
    with table.transaction() as transaction:
        transaction.announce()
        statuses, _ = files_of(table, transaction.instant, deletes=deletes).write(rows)
        assert not transaction.find_false(statuses)
        transaction.add(statuses)
        done = transaction.commit()
    assert (done.upserted == 0, done.deleted == 0) == (deletes, not deletes)
    return statuses


def blocks_of(table: hudi.Table, status: WriteStatus) -> list[RowsBlock | DeleteBlock]:
    path = Path(table.url.removeprefix("file://")) / status.stat.path
    return read_log_file(pa.py_buffer(path.read_bytes()), str(path), lambda _: True, strict=True)


def assert_both_read(folder: Path, upserts: list[Row], deletes: list[Row]) -> None:
    oracle = Oracle(["id"], ["part"], "ts")
    oracle.upsert(upserts)
    oracle.delete(deletes)
    assert_same_rows(read_by_us(folder), arrow(oracle.rows()), "our reader")
    assert_same_rows(without_meta(read_by_hudi_rs(folder)), arrow(oracle.rows()), "hudi-rs")


@pytest.mark.parametrize("group_rows", [131_072, 7], ids=["one block", "many blocks"])
def test_changes_and_deletes_of_one_instant_each_meet_what_is_there(
    table: hudi.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group_rows: int
) -> None:
    monkeypatch.setattr("headgate_tables.hudi.services.bulk.task_files.GROUP_ROWS", group_rows)
    written = load(table, arrow(ROWS))
    assert len(written) == 4
    numbers: list[str] = []
    for status in written:
        sizes = []
        for block in blocks_of(table, status):
            assert isinstance(block, RowsBlock)
            rows = block.read()
            sizes.append(rows.num_rows)
            numbers += rows["_hoodie_commit_seqno"].to_pylist()
        assert sum(sizes) == status.stat.rows
        assert max(sizes) <= group_rows
        assert (len(sizes) > 1) == (group_rows == 7)
    assert len(numbers) == len(set(numbers)), "two rows of a commit have one sequence number"
    assert_both_read(tmp_path / "t", [*OLD, *ROWS], [])
    gone = [{**row, "ts": 200 if at % 2 else 1} for at, row in enumerate(ROWS[:50])]
    deleted = load(table, arrow(gone).select(["ts", "part", "id"]), deletes=True)
    assert sum(status.stat.deletes for status in deleted) == len({row["id"] for row in gone})
    assert_both_read(tmp_path / "t", [*OLD, *ROWS], gone)
    assert not table.verify().findings


@pytest.mark.parametrize("deletes", [False, True], ids=["upserts", "deletes"])
def test_runs_of_a_task_share_each_file_in_whatever_order_they_get_the_rows(
    table: hudi.Table, tmp_path: Path, deletes: bool
) -> None:
    with table.transaction() as transaction:
        transaction.announce()
        runs = [files_of(table, transaction.instant, deletes=deletes) for _ in range(4)]
        orders = [ROWS, ROWS[::-1], ROWS, ROWS[60:] + ROWS[:60]]
        with ThreadPoolExecutor(len(runs)) as pool:
            reports = [statuses for statuses, _ in pool.map(lambda run, rows: run.write(arrow(rows)), runs, orders)]
        assert all(report == reports[0] for report in reports)
        staged = list((tmp_path / "t/.hoodie/.headgate/stage").rglob(f"{transaction.instant}*"))
        assert len(staged) == len(reports[0])
        transaction.add(reports[0])
    late, _ = files_of(table, transaction.instant, deletes=deletes).write(arrow(ROWS))
    assert late == reports[0], "a run that comes after the commit"
    assert_both_read(tmp_path / "t", OLD if deletes else [*OLD, *ROWS], ROWS if deletes else [])


def test_the_loser_of_a_race_reports_the_bytes_of_the_winner(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    tied = [{**row, "ts": 60} for row in ROWS]  # any of a key's rows may be written, so the two runs write different ones
    with table.transaction() as transaction:
        transaction.announce()
        winner, loser = files_of(table, transaction.instant), files_of(table, transaction.instant)
        reports: list[list[WriteStatus]] = []
        encode = load_logs.LogFiles._encode

        def encode_late(self: load_logs.LogFiles, *arguments: Any) -> None:
            if self is loser and not reports:
                reports.append(winner.write(arrow(tied))[0])
            encode(self, *arguments)

        monkeypatch.setattr(load_logs.LogFiles, "_encode", encode_late)
        lost, _ = loser.write(arrow(tied[::-1]))
        assert [lost] == reports
        transaction.rollback()


def test_a_second_run_that_gets_other_rows_is_refused_and_so_are_deletes_in_place_of_upserts(table: hudi.Table) -> None:
    with table.transaction() as transaction:
        transaction.announce()
        files_of(table, transaction.instant).write(arrow(ROWS))
        other = [{**row, "id": row["id"].replace("k1", "q1")} for row in ROWS]
        with pytest.raises(FixCall, match="other rows"):
            files_of(table, transaction.instant).write(arrow(other))
        with pytest.raises(CorruptFileError, match="not by a file of this load"):
            files_of(table, transaction.instant, deletes=True).write(arrow(ROWS))
        transaction.rollback()


def test_a_second_run_reads_each_file_of_the_first_once(table: hudi.Table) -> None:
    with table.transaction() as transaction:
        transaction.announce()
        first, _ = files_of(table, transaction.instant).write(arrow(ROWS))
        store = CountingStore(Path(table.url.removeprefix("file://")))
        assert table.definition is not None
        task = LoadTask(transaction.instant, table.epoch, PROCESS, 0)
        again, _ = log_files(store, table.definition, task, deletes=False).write(arrow(ROWS))
        assert again == first
        assert sum(end - start for start, end in store.ranges) == sum(status.stat.size for status in first)
        transaction.rollback()


def test_a_damaged_file_under_the_name_is_not_taken_for_another_runs(table: hudi.Table) -> None:
    with table.transaction() as transaction:
        transaction.announce()
        statuses, _ = files_of(table, transaction.instant).write(arrow(ROWS))
        staged = Path(table.url.removeprefix("file://")) / statuses[0].file.stage
        staged.write_bytes(staged.read_bytes()[:-9])
        with pytest.raises(CorruptFileError):
            files_of(table, transaction.instant).write(arrow(ROWS))
        transaction.rollback()


def test_log_files_are_refused_in_a_load_of_base_files(table: hudi.Table) -> None:
    with table.transaction() as transaction:
        transaction.announce_bulk_load("insert_overwrite")
        statuses, _ = files_of(table, transaction.instant).write(arrow(ROWS))
        assert set(transaction.find_false(statuses)) == set(range(len(statuses)))
        transaction.rollback()
