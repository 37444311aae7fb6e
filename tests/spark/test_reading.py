"""Tables read by real Spark through ``headgate_spark.read``: rows and types as an oracle, hudi-rs and Hudi's reader give them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_spark import read, typed_errors
from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError, SchemaError
from support import golden
from support.bulk_rows import ROWS, SCHEMA, expected, new_table, row
from support.oracle import Oracle
from support.readers import assert_all_agree
from support.same_rows import assert_same_rows
from support.spark_hudi import arrow_of, read_by_spark
from support.type_cases import CASES, column

KEYS = ("id", "part", "ts")


def rows_of(rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=schema)


def later(number: int, ts: int) -> dict[str, Any]:
    return {**row(number), "ts": ts, "v": -number}


@pytest.mark.parametrize("ordering", ["ts", None])
def test_upserts_deletes_logs_and_compacted_slices_are_read_as_others_read_them(
    spark: Any, tmp_path: Path, ordering: str | None
) -> None:
    oracle = Oracle(["id"], ["part"], ordering)
    with hudi.create_table(
        str(tmp_path / "t"), SCHEMA, record_key=["id"], partition_by=["part"], ordering=ordering, buckets=2
    ) as table:
        first, late = ROWS[:400], [later(n, 1 if n % 2 else 5000) for n in range(60)]
        gone = [{name: later(n, 6000)[name] for name in KEYS} for n in range(0, 90, 3)]
        for step, rows in enumerate((first, late)):
            oracle.upsert(rows)
            table.upsert(rows_of(rows))
            if step == 0:
                table.compact()
        oracle.delete(gone)
        table.delete(pa.Table.from_pylist(gone, schema=pa.schema([SCHEMA.field(name) for name in KEYS])))
        wanted = rows_of(oracle.rows())
        frame = read(spark, table)
        assert frame.rdd.getNumPartitions() == len(table.file_groups()) > 1
        table.upsert(rows_of([later(401, 9000)]))
        assert_same_rows(arrow_of(frame), wanted, "the frame of before", fewer_types=True)
        oracle.upsert([later(401, 9000)])
    wanted = rows_of(oracle.rows())
    assert_same_rows(arrow_of(read(spark, str(tmp_path / "t"))), wanted, "headgate_spark", fewer_types=True)
    assert_all_agree(spark, tmp_path / "t", wanted)


def test_every_type_has_the_type_and_values_that_hudis_reader_shows(spark: Any, tmp_path: Path) -> None:
    given = pa.schema([("id", pa.string()), *((name, case.given) for name, case in CASES.items())])
    stored = pa.schema([("id", pa.string()), *((name, case.stored) for name, case in CASES.items())])
    with hudi.create_table(str(tmp_path / "t"), given, record_key="id", buckets=1) as table:
        for numbers in ([0, 1, 2, 3, 4], [2, 3]):
            keys = pa.array([f"k{n}" for n in range(len(numbers))])
            table.upsert(pa.table([keys, *(column(name, case.given, numbers) for name, case in CASES.items())], schema=given))
    found = read(spark, str(tmp_path / "t"))
    theirs = spark.read.format("hudi").option("hoodie.metadata.enable", "false").load(str(tmp_path / "t"))
    assert found.dtypes == theirs.select(*stored.names).dtypes
    assert_same_rows(arrow_of(found), arrow_of(theirs.select(*stored.names)), "headgate_spark")


def test_queries_of_the_past_give_what_hudis_reader_gives(spark: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    with hudi.open_table(url) as table:
        table.upsert(rows_of(ROWS[:100]))
        table.compact()
        table.upsert(rows_of([later(n, 5000) for n in range(5)]))
        first, *_, last = table.commits()
    optimised = read_by_spark(spark, tmp_path / "t", mode="read_optimized").select(SCHEMA.names)
    assert_same_rows(arrow_of(read(spark, url, mode="read_optimized")), optimised, "read optimised")
    assert_same_rows(arrow_of(read(spark, url, as_of=first.completion)), expected(ROWS[:100]), "as of", fewer_types=True)
    changes = read_by_spark(spark, tmp_path / "t", since=first.completion, as_of=last.completion).select(SCHEMA.names)
    found = arrow_of(read(spark, url, since=first.completion, as_of=last.completion))
    assert_same_rows(found, changes, "changes")
    assert read(spark, url, since=last.completion).count() == 0


def test_what_filters_partitions_and_columns_leave_out_is_not_read(spark: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    with hudi.open_table(url) as table:
        table.upsert(rows_of(ROWS[:90]))
    for left_out in ("p 1", "p 2"):
        shutil.rmtree(tmp_path / "t" / left_out, ignore_errors=True)
        (tmp_path / "t" / left_out).mkdir()
    wanted = [{"v": row["v"], "id": row["id"]} for row in ROWS[:90] if row["part"] == "p 0" and row["ts"] > 50]
    for asked in ({"partitions": ["p 0"], "filter": "ts > 50"}, {"filter": "part = 'p 0' AND ts > 50"}):
        frame = read(spark, url, columns=["v", "id"], **asked)
        assert frame.columns == ["v", "id"]
        assert frame.rdd.getNumPartitions() == 2
        assert sorted(map(str, arrow_of(frame).to_pylist())) == sorted(map(str, wanted))
    with pytest.raises(SchemaError, match="no column 'w'"):
        read(spark, url, columns=["w"])


def test_a_damaged_file_is_named_by_a_typed_error(spark: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    with hudi.open_table(url) as table:
        table.upsert(rows_of(ROWS[:90]))
    file = next((tmp_path / "t" / "p 1").glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(CorruptFileError, match=f"p 1/{file.name}"), typed_errors():
        read(spark, url).collect()


@pytest.mark.parametrize(
    "name", ["h102_v8_mor_bloom_np", "h102_v8_mor_compaction_pending", "h102_v8_mor_event_time_late", "h102_v8_mor_parquetlog"]
)
def test_tables_of_hudi_are_read_as_hudi_reads_them(spark: Any, tmp_path: Path, name: str) -> None:
    url = golden.unpack(name, tmp_path)
    found = arrow_of(read(spark, url))
    assert_same_rows(found, golden.expected_rows(name).select(found.column_names), name, fewer_types=True)


def test_an_empty_table_has_its_columns_and_no_rows(spark: Any, tmp_path: Path) -> None:
    frame = read(spark, new_table(tmp_path / "t"))
    assert (frame.columns, frame.count()) == (SCHEMA.names, 0)
