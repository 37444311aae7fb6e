"""Tables of version 8 in every state that Spark's table services leave: we read what Spark reads, meta columns included."""

from support.spark_rows import ALL_DONE, MakeTable, assert_readers_agree, rows
from support.table_files import data_files, instant_of

BUCKETS = "SparkConsistentBucketClustering"
CLUSTERING = "org.apache.hudi.client.clustering"


def test_a_compaction_before_it_runs_after_it_ran_and_after_the_clean(make: MakeTable) -> None:
    table = make(partition=["part"])
    table.upsert(rows(range(12), 1))
    table.upsert(rows(range(6, 14), 2))
    table.delete(rows(range(2), 3))
    table.call("run_compaction", op="schedule")
    table.upsert(rows(range(2, 8), 2))
    assert table.actions()[-4:] == ["compaction.requested", *ALL_DONE]
    assert_readers_agree(table, live=14 - 2)

    table.run_scheduled_compactions()
    table.upsert(rows(range(5, 9), 6))
    assert "commit" in table.actions()
    assert_readers_agree(table, live=12)

    before = len(data_files(table.path))
    table.call("run_clean", retain_commits=1)
    assert len(data_files(table.path)) < before
    assert_readers_agree(table, live=12)


def test_overwritten_and_deleted_partitions_and_a_whole_table_overwritten(make: MakeTable) -> None:
    table = make(partition=["part"], index="SIMPLE")
    table.upsert(rows(range(12), 1))
    table.upsert(rows(range(4), 2))
    table.write(rows(range(30, 33), 2, parts=["a"]), "insert_overwrite")
    assert_readers_agree(table, live=12 - 4 + 3)
    table.write(rows([0], 2, parts=["b"]), "delete_partition", hoodie_datasource_write_partitions_to_delete="b")
    table.upsert(rows([2, 5, 30], 3, parts=["c"]))
    assert_readers_agree(table, live=3 + 5)
    table.write(rows(range(3), 1), "insert_overwrite_table")
    assert_readers_agree(table, live=3)
    assert table.actions().count("replacecommit") == 3


def test_clustering_before_and_after_it_ran(make: MakeTable) -> None:
    table = make(index="SIMPLE")
    table.write(rows(range(8), 1), "bulk_insert")
    table.write(rows(range(8, 16), 1), "bulk_insert")
    table.call("run_clustering", op="schedule")
    assert table.actions()[-1] == "clustering.requested"
    assert_readers_agree(table, live=16)
    table.call("run_clustering", op="execute")
    table.upsert(rows(range(4, 20), 2))
    assert "replacecommit" in table.actions()
    assert_readers_agree(table, live=20)


def test_an_archived_timeline(make: MakeTable) -> None:
    table = make(
        options={
            "hoodie.keep.min.commits": "3",
            "hoodie.keep.max.commits": "4",
            "hoodie.clean.commits.retained": "2",
            "hoodie.clean.automatic": "true",
            "hoodie.compact.inline": "true",
            "hoodie.compact.inline.max.delta.commits": "4",
        }
    )
    for step in range(8):
        table.upsert(rows(range(step, step + 4), step))
    assert len(table.actions()) < 3 * 8, "nothing was archived"
    assert_readers_agree(table, live=11)


def test_log_files_whose_instants_are_archived(make: MakeTable) -> None:
    """Without a compaction the files of all commits stay, while the timeline keeps the last few."""
    settings = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
        "hoodie.clean.automatic": "true",
    }
    table = make(options=settings)
    for step in range(6):
        table.upsert(rows(range(step, step + 4), step))
    oldest = min(name[:17] for name in (file.name for file in (table.path / ".hoodie" / "timeline").glob("2*")))
    assert any(oldest > instant_of(log) for log in data_files(table.path)), "nothing was archived"
    assert_readers_agree(table, live=9)


def test_a_failed_commit_that_the_next_write_rolls_back(make: MakeTable) -> None:
    table = make()
    table.upsert(rows(range(6), 1))
    table.upsert(rows(range(3, 9), 2))
    completed = max((table.path / ".hoodie" / "timeline").glob("*.deltacommit"))
    completed.unlink()
    assert_readers_agree(table, live=6)
    table.upsert(rows([7], 3))
    assert "rollback" in table.actions()
    assert_readers_agree(table, live=7)


def test_a_savepoint_a_restore_to_it_and_a_rollback(make: MakeTable) -> None:
    table = make(partition=["part"])
    table.upsert(rows(range(12), 1))
    table.upsert(rows(range(2, 6), 2))
    saved = max(file.name for file in (table.path / ".hoodie" / "timeline").glob("*.deltacommit"))[:17]
    table.call("create_savepoint", commit_time=saved)
    table.upsert(rows(range(4, 20), 3))
    assert_readers_agree(table, live=20)
    table.call("rollback_to_savepoint", instant_time=saved)
    assert "restore" in table.actions()
    assert_readers_agree(table, live=12)
    table.upsert(rows(range(4, 7), 4))
    newest = max(file.name for file in (table.path / ".hoodie" / "timeline").glob("*.deltacommit"))[:17]
    table.call("rollback_to_instant", instant_time=newest)
    assert_readers_agree(table, live=12)


def test_log_compaction(make: MakeTable) -> None:
    settings = {
        "hoodie.log.compaction.enable": "true",
        "hoodie.log.compaction.inline": "true",
        "hoodie.log.compaction.blocks.threshold": "2",
    }
    table = make(options=settings)
    for step in range(4):
        table.upsert(rows(range(step, step + 4), step))
        table.delete(rows([step], step))
    assert "logcompaction.requested" in table.actions()
    assert_readers_agree(table, live=3)


def test_consistent_hashing_before_and_after_it_split_buckets(make: MakeTable) -> None:
    table = make(
        partition=["part"],
        options={
            "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
            "hoodie.bucket.index.max.num.buckets": "8",
            "hoodie.bucket.index.min.num.buckets": "1",
            "hoodie.parquet.max.file.size": "1000",
            "hoodie.bucket.index.split.threshold": "0.1",
            "hoodie.clustering.plan.strategy.class": f"{CLUSTERING}.plan.strategy.{BUCKETS}PlanStrategy",
            "hoodie.clustering.execution.strategy.class": f"{CLUSTERING}.run.strategy.{BUCKETS}ExecutionStrategy",
        },
    )
    table.upsert(rows(range(40), 1))
    assert_readers_agree(table, live=40)
    table.call("run_clustering", op="scheduleAndExecute")
    table.upsert(rows(range(30, 50), 2))
    assert "replacecommit" in table.actions()
    assert_readers_agree(table, live=50)


def test_a_table_that_was_upgraded_from_version_6(make: MakeTable) -> None:
    table = make(partition=["part"], options={"hoodie.write.table.version": "6"})
    table.upsert(rows(range(12), 1))
    table.upsert(rows(range(2, 6), 2))
    table.upsert(rows(range(5, 8), 3), hoodie_write_table_version="8", hoodie_write_auto_upgrade="true")
    assert "hoodie.table.version=8" in (table.path / ".hoodie" / "hoodie.properties").read_text().splitlines()
    assert_readers_agree(table, live=12)
