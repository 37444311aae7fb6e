"""A write token tells nothing of who wrote a file: other writers' first tasks have ours."""

from pathlib import Path

import pyarrow.parquet as pq

from headgate_tables import hudi
from support.other_program import other_program
from support.table_files import data_files, instant_of
from support.tables import create, notes, rows


def test_a_fresh_spark_gives_its_base_file_our_write_token(tmp_path: Path) -> None:
    """Fact HF10, seen on Spark: ``…_0-0-0_<instant>.parquet`` from the first stage of a session, without an Avro schema."""
    table = create(tmp_path, partitioned=False, buckets=1)
    table.upsert(rows(("a", 1, "x"), ("b", 1, "x")))
    table.upsert(rows(("a", 2, "y"), ("c", 1, "x")))
    plan = table.plan_compaction(forced=True)
    assert plan is not None
    with other_program(tmp_path / "table", buckets=1) as other:
        other.compact()
        [base] = [file for file in data_files(tmp_path / "table of another program") if instant_of(file) == plan.instant]
        assert "_0-0-0_" in base.name
        as_spark_does = pq.read_table(base).replace_schema_metadata({"org.apache.spark.version": "3.5.5"})
        pq.write_table(as_spark_does, base, store_schema=False)
    again = hudi.open_table(table.url)
    assert again.adopt().finished_plans == (plan.instant,)
    assert notes(again) == {"a": "y", "b": "x", "c": "x"}
    again.upsert(rows(("b", 2, "y")))
    assert again.compact().completion
    assert notes(again) == {"a": "y", "b": "y", "c": "x"}
