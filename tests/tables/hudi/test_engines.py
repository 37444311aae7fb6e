"""What other engines are given to use a table: all that they would otherwise get wrong."""

from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import UnsupportedTableError, UnsupportedTypeError
from headgate_tables.face.engines import Engine
from headgate_tables.hudi.engines import engine_setup
from headgate_tables.hudi.properties import PROPERTIES_PATH
from headgate_tables.hudi.sql_types import Dialect, sql_type
from headgate_tables.hudi.versions import TableVersion
from support.refusals import refused

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("zone", pa.string()), ("ts", pa.int64())])
ENGINES: tuple[Engine, ...] = ("spark", "flink", "trino")


def create(path: Path, **options: object) -> hudi.Table:
    return hudi.create_table(str(path), SCHEMA, **{"record_key": "id", "buckets": 3, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [8, 9])
def test_writers_get_index_bucket_count_and_the_version_that_the_table_has(tmp_path: Path, version: int) -> None:
    table = create(tmp_path / "t", partition_by="part", ordering="ts", hive_style=True, table_version=version)
    spark, flink = table.setup_of("spark"), table.setup_of("flink")
    for settings in (spark.settings, spark.options, flink.options):
        assert settings["hoodie.bucket.index.num.buckets"] == "3"
        assert settings["hoodie.bucket.index.hash.field"] == "id"
        assert settings["hoodie.write.table.version"] == str(version)
        assert settings["hoodie.write.auto.upgrade"] == settings["hoodie.metadata.enable"] == "false"
        assert settings["hoodie.datasource.write.hive_style_partitioning"] == "true"
    assert (spark.options["hoodie.index.type"], flink.options["index.type"]) == ("BUCKET", "BUCKET")
    assert (spark.options["hoodie.datasource.write.precombine.field"], flink.options["precombine.field"]) == ("ts", "ts")
    assert "PARTITIONED BY (`part`)" in flink.statements[0]


def test_a_commit_time_table_names_no_ordering_column(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    assert not [key for engine in ENGINES for key in table.setup_of(engine).options if "precombine" in key]
    assert table.setup_of("spark").options["hoodie.datasource.write.keygenerator.class"].endswith("NonpartitionedKeyGenerator")


def test_the_metastore_gets_meta_columns_first_and_partition_columns_apart(tmp_path: Path) -> None:
    statement = create(tmp_path / "t", partition_by=["part", "zone"]).setup_of("trino").statements[0]
    listed = [line.strip().split("`")[1] for line in statement.splitlines() if line.startswith("  `")]
    assert listed == [*(f"_hoodie_{each}" for each in
                        ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")), "id", "ts"]  # fmt: skip
    assert "PARTITIONED BY (`part` STRING, `zone` STRING)" in statement


def test_quotes_in_a_path_do_not_end_the_text(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    assert table.definition is not None
    for engine, escaped in (("spark", r"'s3a://lake/it\'s'"), ("flink", "'s3a://lake/it''s'"), ("trino", r"'s3://lake/it\'s'")):
        assert escaped in engine_setup(table.definition, TableVersion.EIGHT, "s3://lake/it's", engine).statements[0]


@pytest.mark.parametrize(("version", "new"), [(8, "true"), (9, "false")])
def test_the_form_of_keys_of_one_column_under_two_partition_columns_is_said(tmp_path: Path, version: int, new: str) -> None:
    table = create(tmp_path / "t", partition_by=["part", "zone"], table_version=version)
    for settings in (table.setup_of("spark").settings, table.setup_of("spark").options, table.setup_of("flink").options):
        assert settings["hoodie.write.complex.keygen.new.encoding"] == new
    plain = create(tmp_path / "plain", partition_by="part").setup_of("spark").settings
    assert not [key for key in plain if "complex" in key]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_whose_keys_another_writer_would_write_differently_is_refused(tmp_path: Path, engine: Engine) -> None:
    """As after an upgrade with validation switched off (fact HF13)."""
    table = create(tmp_path / "t", partition_by=["part", "zone"])
    path = tmp_path / "t" / PROPERTIES_PATH
    path.write_text(path.read_text().replace("hoodie.table.version=8", "hoodie.table.version=9"))
    with refused(UnsupportedTableError, "do not have the form.*version 9", "through Headgate alone"):
        hudi.open_table(table.url).setup_of(engine)


@pytest.mark.parametrize(
    ("kind", "dialect", "expected"),
    [
        (pa.timestamp("us", "UTC"), "flink", "TIMESTAMP(6)"),
        (pa.timestamp("ms"), "flink", "TIMESTAMP_LTZ(3)"),
        (pa.timestamp("us", "UTC"), "hive", "TIMESTAMP"),
        (pa.decimal128(8, 2), "hive", "DECIMAL(8, 2)"),
        (pa.list_(pa.struct([("a", pa.binary()), ("b", pa.bool_())])), "flink", "ARRAY<ROW<`a` BYTES, `b` BOOLEAN>>"),
        (pa.map_(pa.string(), pa.struct([("a", pa.binary())])), "hive", "MAP<STRING, STRUCT<`a`:BINARY>>"),
    ],
)
def test_columns_have_the_types_of_the_other_sql(kind: pa.DataType, dialect: Dialect, expected: str) -> None:
    assert sql_type(kind, dialect) == expected


def test_a_type_without_a_name_there_is_refused() -> None:
    with refused(UnsupportedTypeError, "time64", "Read the table with Spark"):
        sql_type(pa.time64("us"), "hive")
