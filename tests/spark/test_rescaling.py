"""A rescale by real Spark: the same rows in other file groups for all readers, whatever happens to tasks and drivers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headgate as sdk
from headgate_cli.exits import ExitCode
from headgate_spark import Written, rescale, rescaling
from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError, OptionError
from headgate_tables.hudi.keys.bucket import bucket_of
from support import spark_faults
from support.bulk_rows import LATER, ROWS, committed, expected, filled_table, leftovers, upsert
from support.cluster import Cluster
from support.numbered_rows import SCHEMA as NUMBERED
from support.numbered_rows import sending
from support.processes import READY_S
from support.readers import assert_all_agree, read_by_hudi_rs


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Of two buckets."""
    return filled_table(tmp_path / "t", compacted=True)


def buckets_of(url: str) -> set[int]:
    with hudi.open_table(url) as table:
        assert not table.verify().findings
        return {bucket_of(group.file_id) for group in table.file_groups()}


def test_all_readers_see_the_same_rows_in_other_buckets_and_upserts_go_on(spark: Any, tmp_path: Path, url: str) -> None:
    heard: list[Written] = []
    done = rescale(spark, url, 12, progress=heard.append)
    rows = expected(ROWS).num_rows
    assert (done.before, done.buckets, done.replaced, done.units, done.rows) == (2, 12, 6, 6, rows)
    assert (heard[-1].tasks, heard[-1].files, heard[-1].rows, heard[-1].bytes) == (6, done.files, rows, done.bytes)
    assert buckets_of(url) == set(range(12))
    assert_all_agree(spark, tmp_path / "t", expected(ROWS))
    upsert(url, LATER)
    assert_all_agree(spark, tmp_path / "t", expected(ROWS, LATER))
    assert rescale(spark, url, 3).units == 9
    assert buckets_of(url) == set(range(3))
    assert_all_agree(spark, tmp_path / "t", expected(ROWS, LATER))
    assert rescale(spark, url, 3).instant == ""
    with pytest.raises(OptionError):
        rescale(spark, url, 0)


@pytest.mark.parametrize("fault", [spark_faults.RescaleFailsOnce, spark_faults.RescaleDiesOnce, spark_faults.RescaleRunsTwice])
def test_a_task_that_runs_again_changes_nothing(
    spark: Any, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, fault: type
) -> None:
    monkeypatch.setattr(rescaling, "Rewriting", fault)
    done = rescale(spark, url, 6)
    assert buckets_of(url) == set(range(6))
    assert_all_agree(spark, tmp_path / "t", expected(ROWS))
    before = committed(tmp_path / "t")
    assert [name for name in leftovers(tmp_path / "t", done.instant) if name not in before] == []


@pytest.mark.parametrize("step", spark_faults.STEPS)
def test_a_driver_that_is_killed_blocks_nobody(spark: Any, tmp_path: Path, url: str, step: str) -> None:
    driver = subprocess.run(
        [sys.executable, "-m", "support.spark_faults", step, url, "6", spark_faults.RESCALE],
        check=False,
        capture_output=True,
        text=True,
    )
    assert driver.returncode == -9, driver.stderr
    upsert(url, LATER)
    # A rescale that is decided is completed by whoever owns the table next.
    assert buckets_of(url) == set(range(6 if step == "slot won" else 2))
    assert_all_agree(spark, tmp_path / "t", expected(ROWS, LATER))
    done = rescale(spark, url, 5)
    assert buckets_of(url) == set(range(5))
    assert_all_agree(spark, tmp_path / "t", expected(ROWS, LATER))
    before = committed(tmp_path / "t")
    assert [name for name in leftovers(tmp_path / "t", done.instant) if name not in before] == []


def test_a_damaged_file_is_named_and_the_table_stays_as_it_was(spark: Any, tmp_path: Path, url: str) -> None:
    log = max((tmp_path / "t").rglob(".*.log.*"), key=lambda path: path.stat().st_mtime_ns)
    content = log.read_bytes()
    log.write_bytes(content[:-100] + bytes(100))
    with pytest.raises(CorruptFileError, match=log.name):
        rescale(spark, url, 6)
    log.write_bytes(content)
    assert buckets_of(url) == {0, 1}
    assert_all_agree(spark, tmp_path / "t", expected(ROWS))


def test_what_progress_raises_ends_the_rescale_before_its_commit(spark: Any, tmp_path: Path, url: str) -> None:
    def fail(_: Written) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rescale(spark, url, 6, progress=fail)
    assert buckets_of(url) == {0, 1}
    assert_all_agree(spark, tmp_path / "t", expected(ROWS))


def test_the_command_plans_shows_its_tasks_and_counts(headgate: Any, spark: Any, tmp_path: Path, url: str) -> None:
    code, events, _ = headgate("table", "rescale", url, "--buckets", "4", "--master", "local[2]")
    assert code == ExitCode.OK
    ((planned,), (done,)) = events["planned"], events["rescaled"]
    assert (planned["before"], planned["file_groups"], planned["units"]) == (2, 6, 6)
    assert [each["tasks"] for each in events["progress"]] == list(range(1, 7))
    assert (done["rows"], done["pause_s"]) == (expected(ROWS).num_rows, 0)
    assert_all_agree(spark, tmp_path / "t", expected(ROWS))
    code, _, error = headgate("table", "rescale", url, "--buckets", "8", "--conf", "a=b")
    assert (code, "--master" in error["message"]) == (ExitCode.USAGE, True)


def test_a_clusters_table_is_lent_to_spark_while_producers_send(headgate: Any, spark: Any, tmp_path: Path) -> None:
    del spark  # in which the command works
    soon = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]}
    with Cluster(tmp_path / "cluster", options=soon) as cluster, sdk.connect(cluster.address, timeout=READY_S) as hg:
        folder = Path(hg.create_table("t", NUMBERED, key="id", partition_by="part", buckets=2).info.url)
        with sending(hg.table("t").channel("c")) as sender:
            sender.wait_for_more()
            code, events, error = headgate(
                "table", "rescale", "t", "--buckets", "6", "--master", "local[2]", "--connect", cluster.address
            )
            assert code == ExitCode.OK, error
            assert events["rescaled"][0]["pause_s"] > 0
            sender.wait_for_more()
            assert hg.table("t").info.buckets == 6
    assert sorted(row["n"] for row in read_by_hudi_rs(folder).select(["n"]).to_pylist()) == list(range(1, sender.sent + 1))
    assert buckets_of(str(folder)) == set(range(6))
