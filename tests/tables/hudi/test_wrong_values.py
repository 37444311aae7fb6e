"""Values, names and settings that Arrow, Python or a file bring along and a table cannot have: refused, and nothing changes."""

from __future__ import annotations

import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import OptionError, SchemaError
from headgate_tables.face.altering import Alteration
from headgate_tables.face.writing import LoadTask
from headgate_tables.opening import open_folder
from headgate_tables.system import SystemIds
from headgate_tables.writing import log_files
from support.tables import by_hudi_rs

PRICE = pa.decimal128(5, 2)
FIELDS: list[tuple[str, pa.DataType]] = [
    ("id", pa.string()),
    ("part", pa.string()),
    ("text", pa.string()),
    ("price", PRICE),
    ("tags", pa.list_(pa.string())),
    ("n", pa.int64()),
    ("m", pa.int64()),
]
SCHEMA = pa.schema(FIELDS)


def row(name: str, part: str = "1", **others: Any) -> dict[str, Any]:
    return {"id": name, "part": part, "text": "fine", "price": decimal.Decimal("1.25"), "tags": ["a"], "n": 1, "m": 1, **others}


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    made = hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key="id", partition_by=["part"], buckets=1)
    made.upsert(pa.Table.from_pylist([row("a"), row("b", "2"), row("c", "12")], SCHEMA))
    return made


def latin1() -> pa.Array[Any]:
    """As pyarrow reads it from a Parquet file that says it is text."""
    (_, offsets, data) = pa.array([b"Z\xfcrich"]).buffers()
    return pa.Array.from_buffers(pa.string(), 1, [None, offsets, data])


def with_value(name: str, values: Any) -> pa.Table:
    rows = pa.Table.from_pylist([row("a")], SCHEMA)
    return rows.set_column(rows.column_names.index(name), name, values)


def wrong_values() -> dict[str, pa.Table]:
    large = pa.array([decimal.Decimal("1234567.89")], pa.decimal128(9, 2)).cast(PRICE, safe=False)
    return {
        "text": with_value("text", latin1()),
        "tags": with_value("tags", pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), latin1())),
        "price": with_value("price", large),
    }


@pytest.mark.parametrize("name", ["text", "tags", "price"])
def test_a_value_that_is_none_of_its_type_is_refused_before_anything_is_written(table: hudi.Table, name: str) -> None:
    before = table.scan().to_table().sort_by("id")
    with pytest.raises(SchemaError, match=f"Column '{name}' has a value that is no"):
        table.upsert(wrong_values()[name])
    definition = table.definition
    assert definition is not None
    task = LoadTask("20990101000000000", table.epoch, "1" * 32, 0)
    files = log_files(open_folder(table.url, None, SystemIds()), definition, task, deletes=False)
    with pytest.raises(SchemaError, match=f"Column '{name}' has a value that is no"):
        files.write(wrong_values()[name])
    assert table.scan().to_table().sort_by("id") == before
    assert len(by_hudi_rs(table.url)) == 3


def test_a_struct_with_two_fields_of_one_name_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("s", pa.struct([("a", pa.int64())]))])
    table = hudi.create_table(str(tmp_path / "t"), schema, record_key="id", buckets=1)
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    for given in (twice, pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), twice)):
        with pytest.raises(SchemaError, match=r"The fields of s are not the table's .*more than once: a"):
            table.upsert(pa.table({"id": ["k"], "s": given}))


def test_one_text_is_no_list_of_partitions_or_columns(table: hudi.Table) -> None:
    for call in (table.delete_partitions, table.check_partitions):
        with pytest.raises(OptionError, match="partitions='12' is one text") as refused:
            call("12")
        assert refused.value.fix == "Pass a list: partitions=['12']."
    with pytest.raises(OptionError, match="nullable='nm' is one text"):
        table.alter(Alteration(nullable="nm"))
    assert table.scan().to_table().num_rows == 3
    assert table.delete_partitions(each for each in ["12"]).replaced == 1  # type: ignore[arg-type]
    assert set(table.scan().to_table()["part"].to_pylist()) == {"1", "2"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("headgate.log.retire.after", "inf"),
        ("headgate.clean.min.age", "inf"),
        ("hoodie.compact.inline.max.delta.seconds", "inf"),
        ("hoodie.index.bloom.fpp", "2"),
    ],
)
def test_a_setting_with_which_the_table_could_not_be_kept_is_refused(table: hudi.Table, key: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"{key}={value} is too large"):
        table.configure({key: value})
    table.upsert(pa.Table.from_pylist([row("d")], SCHEMA))
    table.maintain()


@pytest.mark.parametrize(
    ("key", "given", "text"),
    [
        ("hoodie.clean.commits.retained", 20, "20"),
        ("headgate.clean.min.age", 7.5, "7.5"),
        ("hoodie.clean.automatic", False, "false"),
    ],
)
def test_a_number_or_a_bool_stands_for_a_setting_s_text(table: hudi.Table, key: str, given: float, text: str) -> None:
    table.configure({key: given})
    assert hudi.open_table(table.url).settings.to_texts()[key] == text
    table.upsert(pa.Table.from_pylist([row("d")], SCHEMA))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["hoodie.clean.commits.retained"], "is no mapping of settings"),
        (None, "None is no mapping of settings"),
        ({5: "x"}, "5 is no name of a setting"),
        ({"hoodie.clean.commits.retained": b"20"}, "hoodie.clean.commits.retained=b'20' is no value of a setting"),
    ],
)
def test_what_is_no_setting_is_refused_and_nothing_changes(table: hudi.Table, given: Any, told: str) -> None:
    before = table.settings
    with pytest.raises(OptionError, match=told):
        table.configure(given)
    assert hudi.open_table(table.url).settings == before


@pytest.mark.parametrize("name", ["n.city", ".x", "1st", "N"])
def test_a_batch_adds_no_column_whose_name_no_table_can_have(tmp_path: Path, name: str) -> None:
    schema = pa.schema([("id", pa.string()), ("n", pa.struct([("a", pa.int64())]))])
    table = hudi.create_table(str(tmp_path / "t"), schema, record_key="id", buckets=1)
    table.configure({"headgate.evolve": "add"})
    with pytest.raises(SchemaError, match=r"a name that Avro does not allow|have the same name"):
        table.alter(table.evolution(schema.append(pa.field(name, pa.string()))))
    with pytest.raises(SchemaError):
        table.alter(Alteration(add={".y": pa.string()}))
    assert table.schema == hudi.open_table(table.url).schema
    assert table.schema.field("n").type.num_fields == 1
