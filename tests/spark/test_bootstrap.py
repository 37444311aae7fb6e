"""Copies of tables of other kinds: what all readers see afterwards, and how a copy goes on that broke off."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_cli.bulk_load import bootstrap as command
from headgate_cli.exits import ExitCode
from headgate_spark import Copied, Written, bootstrap
from headgate_spark.bootstrap import STEP_ROWS, CopyPlan, plan_new_copy
from headgate_tables import hudi
from headgate_tables.errors import OptionError, OtherDefinitionError, StoreUnavailableError, TablesError
from support import golden
from support.bulk_rows import ROWS, SCHEMA, expected, row
from support.readers import assert_all_agree, read_by_us, without_meta
from support.same_rows import assert_same_rows
from support.spark_faults import BOOTSTRAP
from support.spark_hudi import SparkTable

PARTITIONS = 7
SOURCE = [{**each, "part": f"p {number % PARTITIONS}"} for number, each in enumerate(ROWS)]
OF_TABLE = {"record_key": "id", "partition_by": "part", "ordering": "ts", "buckets": 2}


@pytest.fixture
def source(tmp_path: Path) -> str:
    """A folder of Parquet files, with rows of the same keys in several of them."""
    folder = tmp_path / "source"
    folder.mkdir()
    for at in range(4):
        pq.write_table(pa.Table.from_pylist(SOURCE[at::4], schema=SCHEMA), folder / f"{at}.parquet")
    return str(folder)


def copy(spark: Any, source: str, folder: Path, **more: Any) -> Copied:
    return bootstrap(spark.read.parquet(source), str(folder), **(OF_TABLE | {"tasks": 2, "step_rows": 250} | more))


def test_a_folder_of_files_is_copied_in_steps_and_then_takes_rows(spark: Any, tmp_path: Path, source: str) -> None:
    plans: list[CopyPlan] = []
    seen: list[Written] = []
    done = copy(spark, source, tmp_path / "t", planned=plans.append, progress=seen.append)
    rows = expected(SOURCE)
    assert (done.partitions, done.skipped, done.commits) == (PARTITIONS, 0, 4)
    assert (done.rows, done.superseded) == (rows.num_rows, len(SOURCE) - rows.num_rows)
    assert [(plan.partitions, plan.rows, len(plan.steps)) for plan in plans] == [(PARTITIONS, len(SOURCE), 4)]
    assert [each.rows for each in seen] == sorted(each.rows for each in seen)
    assert (seen[-1].rows, seen[-1].files, seen[-1].bytes) == (done.rows, done.files, done.bytes)
    assert_all_agree(spark, tmp_path / "t", rows)
    more = [{**row(number), "ts": 10_000} for number in range(40)]
    with hudi.open_table(str(tmp_path / "t")) as table:
        table.upsert(pa.Table.from_pylist(more, schema=SCHEMA))
        assert not table.verify().findings
    assert_all_agree(spark, tmp_path / "t", expected(SOURCE, more))


def test_a_copy_that_is_complete_copies_nothing_again(spark: Any, tmp_path: Path, source: str) -> None:
    copy(spark, source, tmp_path / "t")
    assert copy(spark, source, tmp_path / "t") == Copied(skipped=PARTITIONS)
    assert_all_agree(spark, tmp_path / "t", expected(SOURCE))


@pytest.mark.parametrize("step", ["a task wrote its files", "slot won"])
def test_a_copy_whose_driver_is_killed_goes_on_where_it_was(spark: Any, tmp_path: Path, source: str, step: str) -> None:
    command = [sys.executable, "-m", "support.spark_faults", step, str(tmp_path / "t"), source, BOOTSTRAP]
    driver = subprocess.run(command, check=False, capture_output=True, text=True)
    assert driver.returncode == -9, driver.stderr
    done = copy(spark, source, tmp_path / "t")
    there = 2 if step == "slot won" else 0  # the partitions of the first step
    assert (done.skipped, done.partitions) == (there, PARTITIONS - there)
    assert_all_agree(spark, tmp_path / "t", expected(SOURCE))
    with hudi.open_table(str(tmp_path / "t")) as table:
        assert not table.verify().findings


def test_a_copy_that_fails_in_the_middle_keeps_its_steps(spark: Any, tmp_path: Path, source: str) -> None:
    def fails(written: Written) -> None:
        if written.files > 4:
            raise RuntimeError("the program that shows progress")

    with pytest.raises(RuntimeError, match="shows progress"):
        copy(spark, source, tmp_path / "t", progress=fails)
    done = copy(spark, source, tmp_path / "t")
    assert (done.skipped, done.partitions) == (2, PARTITIONS - 2)
    assert_all_agree(spark, tmp_path / "t", expected(SOURCE))


def test_a_source_that_changes_while_it_is_copied_is_noticed_before_the_commit(spark: Any, tmp_path: Path) -> None:
    counter = tmp_path / "rows"
    counter.write_text("50")

    def rows_of_now(batches: Any) -> Any:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"id": list(range(int(counter.read_text())))})

    frame = spark.range(1).repartition(1).mapInArrow(rows_of_now, "id long")
    with pytest.raises(OptionError, match="gave 40 rows, and had 50"):
        bootstrap(frame, str(tmp_path / "t"), record_key="id", planned=lambda _: counter.write_text("40"))
    assert hudi.open_table(str(tmp_path / "t")).commits() == []
    counter.write_text("50")
    assert bootstrap(frame, str(tmp_path / "t"), record_key="id").rows == 50
    assert read_by_us(tmp_path / "t").num_rows == 50


def test_partitions_of_others_are_noticed_and_left_alone(spark: Any, tmp_path: Path, source: str) -> None:
    copy(spark, source, tmp_path / "t")
    other = [{**row(1), "part": "another"}]
    with hudi.open_table(str(tmp_path / "t")) as table:
        table.upsert(pa.Table.from_pylist(other, schema=SCHEMA))
    with pytest.raises(OptionError, match="rows in 8 partitions, and 7 of them were copied"):
        copy(spark, source, tmp_path / "t")
    assert_all_agree(spark, tmp_path / "t", expected(SOURCE, other))


def test_another_table_at_the_address_is_refused(spark: Any, tmp_path: Path, source: str) -> None:
    hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key="id", buckets=2).close()
    with pytest.raises(OtherDefinitionError, match="partition"):
        copy(spark, source, tmp_path / "t")


@pytest.mark.parametrize("name", ["h120_v9_cow_clustering_done", "h120_v9_mor_consistent_hashing", "h120_v9_mor_rli_part"])
def test_hudi_tables_that_cannot_be_adopted_are_copied_as_hudi_reads_them(spark: Any, tmp_path: Path, name: str) -> None:
    path = golden.unpack(name, tmp_path)
    with pytest.raises(TablesError):
        hudi.open_table(path).adopt()
    url = tmp_path / "ours"
    done = bootstrap(by_hudi(spark, path), str(url), record_key="id", partition_by="part", ordering="ts", buckets=2)
    rows = without_meta(golden.expected_rows(name)).drop_columns(["_hoodie_is_deleted"])
    assert done.rows == rows.num_rows
    assert_all_agree(spark, url, rows)


def test_a_copy_on_write_table_of_version_6_is_copied(spark: Any, tmp_path: Path) -> None:
    options = {"hoodie.write.table.version": "6", "hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
    theirs = SparkTable(spark, tmp_path, "theirs", index="BLOOM", partition=["part"], options=options)
    first, later = ROWS[:400], [{**each, "v": 7, "ts": each["ts"] + 10_000} for each in ROWS[100:200]]
    for rows in (first, later):
        theirs.upsert(pa.Table.from_pylist(rows, schema=SCHEMA))
    url = tmp_path / "ours"
    bootstrap(by_hudi(spark, str(theirs.path)), str(url), record_key="id", partition_by="part", ordering="ts", buckets=2)
    assert_all_agree(spark, url, expected(first, later))


def by_hudi(spark: Any, path: str) -> Any:
    return spark.read.format("hudi").option("hoodie.metadata.enable", "false").load(path)


def test_a_command_copies_shows_its_progress_and_goes_on(headgate: Any, spark: Any, tmp_path: Path, source: str) -> None:
    del spark
    url = str(tmp_path / "t")
    arguments = ["bootstrap", source, "--table", url, "--key", "id", "--partition-by", "part", "--ordering", "ts"]
    arguments += ["--buckets", "2", "--tasks", "2", "--step-rows", "250"]
    code, events, _ = headgate(*arguments, "--plan-only")
    planned = {"event": "planned", "partitions": PARTITIONS, "rows": len(SOURCE), "commits": 4, "skipped": 0}
    assert (code, events) == (ExitCode.OK, {"planned": [planned]})
    assert not Path(url).exists()
    code, events, _ = headgate(*arguments)
    assert (code, events["planned"]) == (ExitCode.OK, [planned])
    (copied,) = events["copied"]
    last = events["progress"][-1]
    assert (last["rows"], last["of_rows"], last["files"]) == (copied["rows"], len(SOURCE), copied["files"])
    assert_same_rows(read_by_us(tmp_path / "t"), expected(SOURCE), "ours")
    code, events, _ = headgate(*arguments)
    assert (code, events["copied"][0]["commits"], events["copied"][0]["skipped"]) == (ExitCode.OK, 0, PARTITIONS)


def test_a_plan_leaves_out_rows_that_are_marked_as_deleted(spark: Any) -> None:
    marked = spark.range(10).selectExpr("id", "id % 2 AS part", "CASE WHEN id < 4 THEN true END AS _hoodie_is_deleted")
    plan = plan_new_copy(marked, ["part"])
    assert (plan.partitions, plan.rows) == (2, 6)


def test_a_command_whose_job_fails_says_that_committed_steps_stay(headgate: Any, tmp_path: Path, source: str) -> None:
    (Path(source) / "3.parquet").write_bytes(b"not a Parquet file")
    code, _, error = headgate("bootstrap", source, "--table", str(tmp_path / "t"), "--key", "id")
    assert code == ExitCode.OPERATOR
    assert "Parquet" in error["message"]
    assert error["fix"].startswith("Steps that were committed stay.")


def test_a_command_that_the_store_stops_in_the_middle_is_one_to_run_again(
    headgate: Any, tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one that has done nothing, which this error says elsewhere."""

    def busy(bar: object, written: Written, rows: int) -> None:
        if written.files > 4:
            raise StoreUnavailableError("the store is busy", fix="Wait.")

    monkeypatch.setattr(command, "_show_progress", busy)
    of_table = ["--key", "id", "--partition-by", "part", "--buckets", "2", "--tasks", "2", "--step-rows", "250"]
    code, _, error = headgate("bootstrap", source, "--table", str(tmp_path / "t"), *of_table)
    assert (code, error["message"], error["kind"]) == (ExitCode.REOPEN, "the store is busy", "StoreUnavailableError")
    assert error["fix"].startswith("Steps that were committed stay.")
    assert len(hudi.open_table(str(tmp_path / "t")).commits()) == 1


def test_the_help_shows_the_librarys_own_default_of_a_step() -> None:
    (option,) = (each for each in command.bootstrap.params if each.name == "step_rows")
    assert option.default == STEP_ROWS


def test_a_command_refuses_text_which_has_no_types(headgate: Any, tmp_path: Path) -> None:
    code, _, error = headgate("bootstrap", "rows.csv", "--format", "csv", "--table", str(tmp_path / "t"), "--key", "id")
    assert code == ExitCode.USAGE
    assert "has no types" in error["message"]
    assert "headgate bulk-load" in error["fix"]
