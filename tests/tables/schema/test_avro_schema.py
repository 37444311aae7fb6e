"""Arrow schemas to Avro text as Spark writes it, and any writer's Avro text to Arrow."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables.errors import CorruptFileError, UnsupportedTableError
from headgate_tables.hudi.log.block import HeaderKey, read_blocks
from headgate_tables.hudi.schema.arrow_to_avro import avro_schema, decimal_size, sanitize
from headgate_tables.hudi.schema.avro_to_arrow import arrow_schema
from headgate_tables.hudi.schema.meta_columns import META_COLUMNS, with_meta, without_meta
from support.golden_logs import golden_files, golden_logs

SPARK_TABLES = ["h120_v8_mor_types_avro", "h102_v8_mor_types_avro", "h120_v8_mor_bucket_part2_url"]


def spark_schema(table: str) -> str:
    """The schema in the header of the first log block."""
    path, content = golden_logs(f"spark/{table}")[0]
    return next(read_blocks(content, path)).headers[HeaderKey.SCHEMA]


def record(*fields: object) -> str:
    return json.dumps({"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": list(fields)})


@pytest.mark.parametrize("table", SPARK_TABLES)
def test_the_schema_of_a_table_that_spark_wrote_is_reproduced_to_the_byte(table: str) -> None:
    written = spark_schema(table)
    assert avro_schema(arrow_schema(written, table), table, meta_columns=True) == written


@pytest.mark.parametrize("table", SPARK_TABLES)
def test_the_schema_agrees_with_the_parquet_files_that_spark_wrote_beside_it(table: str) -> None:
    schema = arrow_schema(spark_schema(table), table)
    base = next(content for path, content in golden_files(f"spark/{table}") if path.endswith(".parquet"))
    stored = pq.read_schema(pa.BufferReader(base))
    assert stored.names == schema.names
    assert all(
        stored.field(name).type == schema.field(name).type
        for name in schema.names
        if not pa.types.is_nested(schema.field(name).type)
    )


def test_meta_columns_are_left_out_or_put_in_front_once() -> None:
    columns = pa.schema([pa.field("id", pa.string(), nullable=False), ("n", pa.int32())])
    with_them = json.loads(avro_schema(with_meta(columns), "t", meta_columns=True))
    without = json.loads(avro_schema(with_meta(columns), "t", meta_columns=False))
    assert [field["name"] for field in with_them["fields"]] == [*META_COLUMNS, "id", "n"]
    assert without["fields"] == [{"name": "id", "type": "string"}, {"name": "n", "type": ["null", "int"], "default": None}]
    assert without_meta(with_meta(columns)) == columns


@pytest.mark.parametrize(
    ("name", "clean"), [("orders", "orders"), ("my-orders 2", "my__orders__2"), ("7days", "__days"), ("ä", "__")]
)
def test_illegal_characters_of_a_table_name_become_two_underscores_each(name: str, clean: str) -> None:
    assert sanitize(name) == clean


def test_decimal_sizes_are_the_fewest_bytes_for_the_precision() -> None:
    limits = [2, 4, 6, 9, 11, 14, 16, 18, 21, 23, 26, 28, 31, 33, 35, 38]
    assert [decimal_size(limit) for limit in limits] == list(range(1, 17))
    assert [decimal_size(limit + 1) for limit in limits[:-1]] == list(range(2, 17))


@pytest.mark.parametrize(
    ("avro", "arrow"),
    [
        ("string", pa.string()),
        ({"type": "string", "avro.java.string": "String"}, pa.string()),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, pa.string()),
        ({"type": "fixed", "name": "F", "size": 5}, pa.binary(5)),
        ({"type": "fixed", "name": "F", "size": 5, "logicalType": "decimal", "precision": 10, "scale": 2}, pa.decimal128(10, 2)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 20}, pa.decimal128(20, 0)),
        ({"type": "int", "logicalType": "time-millis"}, pa.time32("ms")),
        ({"type": "long", "logicalType": "time-micros"}, pa.time64("us")),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", tz="UTC")),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us")),
        ({"type": "long", "logicalType": "something-new"}, pa.int64()),
        ({"type": {"type": "long"}}, pa.int64()),
    ],
)
def test_every_type_that_hudi_writes_has_an_arrow_form(avro: object, arrow: pa.DataType) -> None:
    for kind, nullable in ((avro, False), (["null", avro], True), ([avro, "null"], True)):
        schema = arrow_schema(record({"name": "c", "type": kind}), "f")
        assert schema == pa.schema([pa.field("c", arrow, nullable=nullable)])


def test_a_type_may_be_named_again_instead_of_spelled_out() -> None:
    point = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "double"}]}
    schema = arrow_schema(
        record({"name": "a", "type": point}, {"name": "b", "type": ["null", "Point"]}, {"name": "c", "type": "hoodie.t.Point"}),
        "f",
    )
    expected = pa.struct([pa.field("x", pa.float64(), nullable=False)])
    assert [field.type for field in schema] == [expected] * 3


@pytest.mark.parametrize(
    ("avro", "said"),
    [
        (["null", "int", "string"], "a union of 2 types"),
        (["null"], "a union of 0 types"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 2}, r"decimal\(40, 2\)"),
        (
            {"type": "record", "name": "Tree", "fields": [{"name": "left", "type": ["null", "Tree"]}]},
            "the recursive record 'Tree'",
        ),
        ("Unknown", "the type 'Unknown'"),
    ],
)
def test_a_type_without_arrow_form_is_refused_by_name(avro: object, said: str) -> None:
    with pytest.raises(UnsupportedTableError, match=rf"f\.log: column 'c.*' is {said} in Avro"):
        arrow_schema(record({"name": "c", "type": avro}), "f.log")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"string"', '{"type":"record","name":"t"}', '{"type":"record","fields":[]}', '{"fields":[]}', "null"]
)
def test_text_that_is_not_a_record_schema_is_a_corrupt_file(text: str) -> None:
    with pytest.raises(CorruptFileError, match=re.escape("f.log")):
        arrow_schema(text, "f.log")
