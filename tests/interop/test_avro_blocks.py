"""Log blocks of Avro rows that we write: real Hudi and hudi-rs read them, merge them, and write on top of them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.hudi.log.block import read_blocks
from headgate_tables.hudi.small_blocks import avro_blocks_allowed
from support.readers import assert_all_agree, read_by_hudi_rs, read_by_us, without_meta
from support.same_rows import assert_same_rows
from support.slices import compact, only_operation
from support.spark_hudi import SparkTable, read_by_spark
from support.table_files import data_files, kind
from support.tracked import Tracked
from support.type_cases import CASES, column

AVRO = {"hoodie.logfile.data.block.format": "avro"}
TYPES = {name: case for name, case in CASES.items() if avro_blocks_allowed(pa.schema([(name, case.stored)]))}
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("note", pa.string())])


def blocks_of(path: Path) -> list[str]:
    files = [file for file in data_files(path) if kind(file) == "log"]
    return [block.kind.name for file in files for block in read_blocks(pa.py_buffer(file.read_bytes()), file.name)]


def of_types(schema: pa.Schema, which: dict[str, int]) -> pa.Table:
    """Key to number of the value that each of its columns takes."""
    columns = [column(name, schema.field(name).type, list(which.values())) for name in TYPES]
    return pa.table([pa.array(list(which)), *columns], schema=schema)


@pytest.mark.parametrize("first", ["a base file", "log files only"])
def test_every_type_that_avro_blocks_may_have_reads_the_same_everywhere(spark: Any, tmp_path: Path, first: str) -> None:
    given = pa.schema([("id", pa.string()), *((name, case.given) for name, case in TYPES.items())])
    stored = pa.schema([("id", pa.string()), *((name, case.stored) for name, case in TYPES.items())])
    table = hudi.create_table(str(tmp_path / "t"), given, record_key="id", buckets=1)
    table.configure(AVRO)
    if first == "log files only":
        table.delete(pa.table({"id": ["k3"]}))
    table.upsert(of_types(given, {f"k{i}": i for i in range(5)}))
    table.upsert(of_types(given, {"k0": 2, "k1": 3, "k2": 4, "k9": 0}))
    table.delete(pa.table({"id": ["k3"]}))
    assert {*blocks_of(tmp_path / "t")} == {"AVRO_DATA", "DELETE"}
    expected = of_types(stored, {"k0": 2, "k1": 3, "k2": 4, "k4": 4, "k9": 0})
    assert_same_rows(read_by_us(tmp_path / "t"), expected, "our reader")
    assert_same_rows(without_meta(read_by_hudi_rs(tmp_path / "t")), expected, "hudi-rs")
    assert_same_rows(without_meta(read_by_spark(spark, tmp_path / "t")), expected, "Spark", fewer_types=True)


@pytest.mark.parametrize("ordering", ["ts", None], ids=["event time", "commit time"])
def test_avro_blocks_and_parquet_blocks_and_deletes_of_one_slice_are_merged_alike(
    spark: Any, tmp_path: Path, ordering: str | None
) -> None:
    """Late rows lose, deletes hold, and the blocks of three formats stand in one slice; then compaction, and rows of Spark."""
    table = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering=ordering, buckets=2)

    def rows(numbers: range, second: int, note: str) -> list[dict[str, Any]]:
        return [{"id": f"k{n}", "part": f"p{n % 2}", "ts": second, "note": f"{note} {n}"} for n in numbers]

    table.upsert(rows(range(12), 10, "first"))
    for form, second in (("avro", 20), ("parquet", 15), ("auto", 30)):
        table.table.configure({"hoodie.logfile.data.block.format": form})
        table.upsert(rows(range(2, 9), second, form))
        table.delete(rows(range(second % 7, second % 7 + 3), second + 1, ""))
        assert_all_agree(spark, table.path, table.expected())
    assert {*blocks_of(table.path)} == {"AVRO_DATA", "PARQUET_DATA", "DELETE"}
    options = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
    by_spark = SparkTable(spark, table.path.parent, "t", key="id", ordering=ordering, partition=["part"], options=options)
    newer = rows(range(5, 14), 40, "Spark's")
    by_spark.upsert(table.arrow(newer))
    table.oracle.upsert(newer)
    assert_all_agree(spark, table.path, table.expected())
    table.table = hudi.open_table(str(table.path))
    table.table.adopt()
    table.upsert(rows(range(4), 50, "ours again"))
    assert_all_agree(spark, table.path, table.expected())


def test_real_hudi_compacts_avro_blocks_of_ours(spark: Any, tmp_path: Path) -> None:
    table = Tracked(tmp_path / "t", SCHEMA, ordering="ts", buckets=1)
    table.table.configure(AVRO)
    for second in (10, 30, 20):
        table.upsert([{"id": f"k{n}", "part": "p", "ts": second + n, "note": f"{second}"} for n in range(second % 7, 9)])
    table.delete([{"id": "k5", "part": "p", "ts": 99, "note": ""}])
    by_spark = SparkTable(spark, tmp_path, "t", key="id", ordering="ts", partition=[], options={})
    by_spark.call("run_compaction", op="schedule")
    by_spark.run_scheduled_compactions()
    assert_all_agree(spark, table.path, table.expected())
    table.table = hudi.open_table(str(table.path))
    assert table.table.adopt().completed
    table.upsert([{"id": "k1", "part": "p", "ts": 100, "note": "last"}])
    compact(table.table, only_operation(table.table))
    assert_all_agree(spark, table.path, table.expected())
