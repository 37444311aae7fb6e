"""A Spark job whose table has got another owner: its driver ends it with an error that says so, and nothing of it is left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headgate as sdk
from headgate_cli.exits import ExitCode
from headgate_spark import bulk_insert, loading, owned_jobs, rescale, rescaling, upsert
from headgate_spark.owned_jobs import jobs_while_owned
from headgate_tables.errors import DeposedError, StoreUnavailableError
from support import taken_tables
from support.bulk_rows import LATER, ROWS, committed, expected, filled_table, leftovers, write
from support.cluster import Cluster
from support.numbered_rows import SCHEMA as NUMBERED
from support.numbered_rows import sending
from support.processes import READY_S
from support.readers import assert_all_agree, read_by_hudi_rs
from support.taken_tables import (
    assert_cancelled_when_taken,
    once_tasks_work,
    wait_until_no_job_runs,
    wait_until_nobody_works,
)
from support.waiting import wait_until


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver looks often, and tasks would go on for long."""
    monkeypatch.setattr(owned_jobs, "_LOOK_S", 0.1)
    monkeypatch.setattr(loading, "Writing", taken_tables.LoadGoesOn)
    monkeypatch.setattr(rescaling, "Rewriting", taken_tables.RescaleGoesOn)


CALLS: dict[str, Callable[[Any, Any, str], object]] = {
    "overwrite": lambda _, frame, url: bulk_insert(frame, url, mode="insert_overwrite_table", tasks=2),
    "upsert": lambda _, frame, url: upsert(frame, url, batch=("query", 7)),
    "rescale": lambda spark, _, url: rescale(spark, url, 6),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_job_is_cancelled_and_nothing_of_it_is_visible_or_left(spark: Any, tmp_path: Path, call: str) -> None:
    url = filled_table(tmp_path / "t", compacted=True)
    frame = spark.read.parquet(write(tmp_path / "later.parquet", LATER))
    assert_cancelled_when_taken(spark, url, lambda: CALLS[call](spark, frame, url))
    assert_all_agree(spark, tmp_path / "t", expected(ROWS))
    before = committed(tmp_path / "t")
    assert [name for name in leftovers(tmp_path / "t", "no instant is kept") if name not in before] == []


def test_a_store_that_does_not_answer_ends_no_job(spark: Any) -> None:
    looks: list[int] = []

    def check() -> None:
        looks.append(1)
        if len(looks) < 3:
            raise StoreUnavailableError("the store is busy", fix="Try again later.")

    with jobs_while_owned(spark, check):
        wait_until("it looks again", lambda: len(looks) > 3)
        assert spark.range(10).count() == 10


def test_what_a_block_raises_arrives_as_it_is_while_the_table_is_ours(spark: Any) -> None:
    with pytest.raises(ZeroDivisionError), jobs_while_owned(spark, lambda: None):
        raise ZeroDivisionError
    assert list(spark.sparkContext.getJobTags()) == []


def test_a_task_that_fails_first_of_what_the_new_owner_did_is_told_as_the_loss_of_the_table(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owned_jobs, "_LOOK_S", READY_S)

    def check() -> None:
        raise DeposedError("pod-2 took the table over", fix="Open the table again.")

    gone = FileNotFoundError("a stage is gone")
    with pytest.raises(DeposedError) as error, jobs_while_owned(spark, check):
        raise gone
    assert error.value.message == "pod-2 took the table over; the Spark job ended, and nothing of it is visible"
    assert (error.value.fix, error.value.__cause__) == ("Open the table again.", gone)


@pytest.mark.parametrize("over", ["time", "owner"])
def test_a_loan_that_is_over_ends_the_command_and_the_cluster_goes_on(
    headgate: Any, spark: Any, tmp_path: Path, over: str
) -> None:
    soon = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]}
    with Cluster(tmp_path / "cluster", options=soon) as cluster, sdk.connect(cluster.address, timeout=READY_S) as hg:
        url = hg.create_table("t", NUMBERED, key="id", partition_by="part", buckets=2).info.url

        def end_the_owner() -> None:
            if over == "owner":
                cluster.kill("coordinator-1")
                cluster.start("coordinator-1")

        with sending(hg.table("t").channel("c")) as sender:
            sender.wait_for_more()
            longest = {"time": "5s", "owner": "10m"}[over]
            with once_tasks_work(url, end_the_owner):
                arguments = ["--buckets", "6", "--master", "local[2]", "--longest-pause", longest, "--connect", cluster.address]
                code, _, error = headgate("table", "rescale", "t", *arguments)
            assert (code, error["kind"]) == (ExitCode.OPERATOR, "LoanOver"), error
            said = {"time": ("lent for 5 s", "--longest-pause"), "owner": ("another owner", "Run the same again")}[over]
            assert (said[0] in error["message"], said[1] in error["fix"]) == (True, True), error
            wait_until_no_job_runs(spark)
            wait_until_nobody_works(url)
            sender.wait_for_more()
            assert hg.table("t").info.buckets == 2
    rows = read_by_hudi_rs(Path(url.removeprefix("file://"))).select(["n"]).to_pylist()
    assert sorted(row["n"] for row in rows) == list(range(1, sender.sent + 1))
