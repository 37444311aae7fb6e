"""Every Arrow type that has a place in a table, in base files and in log files, through three readers."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables import hudi
from support.events import EVENTS_SCHEMA, events
from support.readers import assert_all_agree, read_by_us, without_meta
from support.same_rows import assert_same_rows
from support.spark_hudi import read_by_spark
from support.table_files import data_files, kind
from support.tracked import Tracked
from support.type_cases import CASES, column


def test_every_type_in_base_and_log_files(spark: Any, tmp_path: Path) -> None:
    """``k0`` to ``k4`` are written once, then three of them anew, one deleted; ``k9`` comes in a log file only."""
    given = pa.schema([("id", pa.string()), *((name, case.given) for name, case in CASES.items())])
    stored = pa.schema([("id", pa.string()), *((name, case.stored) for name, case in CASES.items())])
    table = hudi.create_table(str(tmp_path / "t"), given, record_key="id", buckets=1)
    table.upsert(rows(given, {f"k{i}": i for i in range(5)}))
    newer = {"k0": 2, "k1": 3, "k2": 4, "k9": 0}
    table.upsert(rows(given, newer))
    table.delete(pa.table({"id": ["k3"]}))

    assert sorted(kind(file) for file in data_files(tmp_path / "t")) == ["base", "log", "log"]
    assert_all_agree(spark, tmp_path / "t", rows(stored, {"k0": 2, "k1": 3, "k2": 4, "k4": 4, "k9": 0}))


def test_every_type_in_file_groups_that_have_log_files_only(spark: Any, tmp_path: Path) -> None:
    """A first operation that deletes leaves no base file behind; hudi-rs takes the schema from the commit then."""
    given = pa.schema([("id", pa.string()), *((name, case.given) for name, case in CASES.items())])
    stored = pa.schema([("id", pa.string()), *((name, case.stored) for name, case in CASES.items())])
    table = hudi.create_table(str(tmp_path / "t"), given, record_key="id", buckets=1)
    table.delete(pa.table({"id": ["k3"]}))
    table.upsert(rows(given, {f"k{i}": i for i in range(5)}))

    assert sorted(kind(file) for file in data_files(tmp_path / "t")) == ["log", "log"]
    assert_all_agree(spark, tmp_path / "t", rows(stored, {f"k{i}": i for i in range(5)}))


def test_columns_that_must_not_be_null(spark: Any, tmp_path: Path) -> None:
    """Also inside other types; Spark shows them as nullable."""
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", pa.string())])
    kinds = {
        "i": pa.int64(),
        "s": pa.string(),
        "d": pa.decimal128(20, 3),
        "n": inner,
        "l": pa.list_(pa.field("element", inner, nullable=False)),
    }
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in {"id": pa.string(), **kinds}.items()])
    values = [
        {"id": f"k{i}", "i": i, "s": "", "d": Decimal("0.001"), "n": {"x": i, "y": None}, "l": [{"x": 1, "y": ""}] * i}
        for i in range(5)
    ]
    table = hudi.create_table(str(tmp_path / "t"), schema, record_key="id", buckets=1)
    table.upsert(pa.Table.from_pylist(values[:3], schema=schema))
    table.upsert(pa.Table.from_pylist(values[2:], schema=schema))
    table.delete(pa.table({"id": ["k0"]}))
    assert_all_agree(spark, tmp_path / "t", pa.Table.from_pylist(values[1:], schema=schema))


def test_files_of_many_pages(spark: Any, tmp_path: Path) -> None:
    """Encodings fall back, dictionaries overflow and threads share the work only in files larger than those of other tests."""
    table = Tracked(tmp_path / "t", EVENTS_SCHEMA, key=["event_id"], ordering="version", buckets=2)
    for part, version in ((events(25_000), 2), (events(21_000, start=10_000, seed=1), 3), (events(2_000, seed=2), 1)):
        table.upsert(part.set_column(9, "version", pa.array([version] * part.num_rows)).to_pylist())
    assert_all_agree(spark, table.path, table.expected())


def test_spark_3_5_cannot_open_parquet_with_times_of_day(spark: Any, tmp_path: Path) -> None:
    """The reason why we store them as integers. When this fails, Spark has learnt it."""
    pq.write_table(pa.table({"t": pa.array([time(1)], pa.time64("us"))}), tmp_path / "t.parquet")
    with pytest.raises(Exception, match="Illegal Parquet type: INT64"):
        spark.read.parquet(str(tmp_path / "t.parquet")).collect()


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us", tz="UTC")], ids=str)
def test_spark_wants_a_setting_for_days_before_1582(spark: Any, tmp_path: Path, kind: pa.DataType) -> None:
    """Files of ours carry no Spark version, so Spark 3.5 asks which calendar was meant; everybody else reads them."""
    old = date(1500, 1, 1) if pa.types.is_date(kind) else datetime(1500, 1, 1, tzinfo=UTC)
    rows = pa.table({"id": ["k"], "at": pa.array([old], kind)})
    hudi.create_table(str(tmp_path / "t"), rows.schema, record_key="id", buckets=1).upsert(rows)
    with pytest.raises(Exception, match="1582"):
        read_by_spark(spark, tmp_path / "t")
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
    try:
        assert_same_rows(without_meta(read_by_spark(spark, tmp_path / "t")), rows, "Spark")
    finally:
        spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInRead")
    assert_same_rows(read_by_us(tmp_path / "t"), rows, "our reader")


def rows(schema: pa.Schema, which: dict[str, int]) -> pa.Table:
    """Key to number of the value that each of its columns takes; ``schema`` is of given or of stored types."""
    columns = [column(name, schema.field(name).type, list(which.values())) for name in CASES]
    return pa.table([pa.array(list(which)), *columns], schema=schema)
