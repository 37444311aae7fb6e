"""What may be a column, and as what it is stored."""

import pyarrow as pa
import pytest

from headgate_tables.errors import SchemaError, UnsupportedTypeError
from headgate_tables.hudi.schema.canonical import check_supported, table_schema

US = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (pa.int8(), pa.int32()),
        (pa.int16(), pa.int32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.binary_view(), pa.binary()),
        (pa.binary(16), pa.binary(16)),
        (pa.date64(), pa.date32()),
        (pa.time32("ms"), pa.int32()),
        (pa.time64("us"), pa.int64()),
        (pa.timestamp("us"), US),
        (pa.timestamp("ms", tz="Europe/Paris"), pa.timestamp("ms", tz="UTC")),
        (pa.decimal32(5, 2), pa.decimal128(5, 2)),
        (pa.decimal256(38, 4), pa.decimal128(38, 4)),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.uuid(), pa.binary(16)),
        (pa.large_list(pa.int8()), pa.list_(pa.field("element", pa.int32()))),
        (pa.list_(pa.field("item", pa.int64(), nullable=False), 3), pa.list_(pa.field("element", pa.int64(), nullable=False))),
        (pa.map_(pa.large_string(), pa.dictionary(pa.int8(), pa.string())), pa.map_(pa.string(), pa.string())),
        (pa.struct([("a", pa.list_(pa.int16()))]), pa.struct([("a", pa.list_(pa.field("element", pa.int32())))])),
    ],
)
def test_each_type_has_one_stored_form(given: pa.DataType, stored: pa.DataType) -> None:
    schema = table_schema(pa.schema([pa.field("c", given, nullable=False)]))
    assert schema == pa.schema([pa.field("c", stored, nullable=False)])
    assert table_schema(schema) == schema


def test_list_and_map_children_get_the_names_of_three_level_parquet_lists() -> None:
    schema = table_schema(
        pa.schema([("l", pa.list_(pa.field("item", pa.int32()))), ("m", pa.map_(pa.string(), pa.field("v", pa.int32())))])
    )
    assert schema.field("l").type.value_field.name == "element"
    assert (schema.field("m").type.key_field.name, schema.field("m").type.item_field.name) == ("key", "value")


def test_metadata_of_the_caller_never_reaches_the_stored_schema() -> None:
    inner = pa.field("a", pa.int32(), metadata={"java-class": "evil.Class"})
    given = pa.schema([pa.field("s", pa.struct([inner]), metadata={"avro.java.string": "x"})], metadata={"pandas": "{}"})
    stored = table_schema(given)
    assert stored.metadata is None
    assert stored.field("s").metadata is None
    assert stored.field("s").type.field("a").metadata is None


@pytest.mark.parametrize(
    ("given", "instead"),
    [
        (pa.uint8(), "int32 or int64"),
        (pa.uint64(), "decimal128"),
        (pa.float16(), "float32"),
        (pa.timestamp("ns", tz="UTC"), r"timestamp\('us'\)"),
        (pa.time32("s"), r"time32\('ms'\)"),
        (pa.time64("ns"), r"time64\('us'\)"),
        (pa.duration("us"), "int64"),
        (pa.month_day_nano_interval(), "int64"),
        (pa.null(), "type that its values will have"),
        (pa.decimal256(39, 0), "38 digits"),
        (pa.decimal128(5, -2), "scale from 0"),
        (pa.map_(pa.int32(), pa.string()), "string keys"),
        (pa.dense_union([pa.field("a", pa.int32())]), "struct"),
        (pa.run_end_encoded(pa.int32(), pa.string()), "run_end_decode"),
        (pa.struct([]), "struct of these"),
    ],
)
def test_other_types_are_refused_with_the_column_and_a_type_to_use_instead(given: pa.DataType, instead: str) -> None:
    for kind, path in ((given, "c"), (pa.list_(given), "c.element"), (pa.struct([("deep", given)]), "c.deep")):
        with pytest.raises(UnsupportedTypeError, match=rf"Column '{path}' .*{instead}"):
            check_supported(pa.schema([("c", kind)]))


@pytest.mark.parametrize("name", ["", "1st", "a-b", "a b", "ä", "a.b"])
def test_a_name_that_avro_does_not_allow_is_refused(name: str) -> None:
    for schema in (pa.schema([(name, pa.int32())]), pa.schema([("s", pa.struct([(name, pa.int32())]))])):
        with pytest.raises(SchemaError, match="Avro does not allow"):
            check_supported(schema)


@pytest.mark.parametrize("names", [["a", "a"], ["a", "A"]])
def test_names_that_readers_could_not_tell_apart_are_refused(names: list[str]) -> None:
    with pytest.raises(SchemaError, match="have the same name"):
        check_supported(pa.schema([(name, pa.int32()) for name in names]))


def test_names_of_hudi_are_refused() -> None:
    with pytest.raises(SchemaError, match="'_hoodie_is_deleted' has a name that Hudi reserves"):
        check_supported(pa.schema([("_hoodie_is_deleted", pa.bool_())]))
