"""Which alteration lets a table hold a batch's columns, and what its setting ``headgate.evolve`` refuses."""

import pyarrow as pa
import pytest

from headgate_tables.errors import SchemaError, UnsupportedTypeError
from headgate_tables.face.altering import Alteration
from headgate_tables.hudi.schema.altered import altered
from headgate_tables.hudi.schema.evolution import evolution

TABLE = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("small", pa.int32()),
        ("large", pa.int64()),
        ("half", pa.float32()),
        ("price", pa.decimal128(10, 2)),
        ("place", pa.struct([("zip", pa.int32()), ("at", pa.struct([("x", pa.float32())]))])),
        ("tags", pa.list_(pa.field("element", pa.struct([("name", pa.string())])))),
        ("seats", pa.map_(pa.string(), pa.field("value", pa.int32()))),
    ]
)


def of(*columns: tuple[str, pa.DataType], evolve: str = "add-and-widen") -> Alteration:
    return evolution(TABLE, pa.schema(list(columns)), evolve)


def test_columns_that_the_table_holds_change_nothing_whatever_the_setting_is() -> None:
    assert evolution(TABLE, TABLE, "refuse") == Alteration()
    narrower = (("large", pa.int32()), ("price", pa.decimal128(4, 2)), ("small", pa.int8()), ("id", pa.large_string()))
    assert of(*narrower, evolve="refuse") == Alteration()
    assert of(("place", pa.struct([("zip", pa.int32())])), evolve="refuse") == Alteration()


def test_new_columns_and_fields_at_any_depth_are_added_in_the_types_of_tables() -> None:
    found = of(
        ("gate", pa.dictionary(pa.int8(), pa.large_string())),
        ("place", pa.struct([("street", pa.string()), ("at", pa.struct([("x", pa.float32()), ("y", pa.float32())]))])),
        ("tags", pa.large_list(pa.struct([("rank", pa.int16())]))),
        evolve="add",
    )
    added = {"gate": pa.string(), "place.street": pa.string(), "place.at.y": pa.float32(), "tags.element.rank": pa.int32()}
    assert found == Alteration(add=added)
    after = altered(TABLE, found, {"id"})
    assert evolution(after, pa.schema([("place", after.field("place").type), ("gate", pa.string())]), "refuse") == Alteration()


@pytest.mark.parametrize(
    ("name", "kind", "path", "wider"),
    [
        ("small", pa.int64(), "small", pa.int64()),
        ("small", pa.float64(), "small", pa.float64()),
        ("half", pa.float64(), "half", pa.float64()),
        ("price", pa.decimal128(12, 2), "price", pa.decimal128(12, 2)),
        ("place", pa.struct([("zip", pa.int64())]), "place.zip", pa.int64()),
        ("seats", pa.map_(pa.string(), pa.int64()), "seats.value", pa.int64()),
    ],
)
def test_types_are_widened_only_where_the_setting_says_so(name: str, kind: pa.DataType, path: str, wider: pa.DataType) -> None:
    assert of((name, kind)) == Alteration(widen={path: wider})
    for evolve in ("add", "refuse"):
        with pytest.raises(SchemaError, match=f"headgate.evolve={evolve}") as refused:
            of((name, kind), evolve=evolve)
        assert f'--widen "{path}={wider}"' in refused.value.fix
        assert "headgate.evolve=add-and-widen" in refused.value.fix


def test_a_new_column_is_refused_with_the_command_that_adds_it() -> None:
    with pytest.raises(SchemaError, match=r"no column 'gate', and its setting headgate.evolve=refuse") as refused:
        of(("gate", pa.int16()), evolve="refuse")
    assert '--add "gate=int32"' in refused.value.fix
    assert "headgate.evolve=add`" in refused.value.fix


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("id", pa.int64(), r"'id' is string in the table and int64 in the batch"),
        ("large", pa.float64(), r"'large' is int64 in the table and double in the batch"),
        ("price", pa.decimal128(12, 3), r"'price' is decimal128\(10, 2\) in the table and decimal128\(12, 3\) in the batch"),
        ("place", pa.struct([("zip", pa.string())]), r"'place.zip' is int32 in the table and string in the batch"),
        ("place", pa.string(), r"'place' is struct<.*> in the table and string in the batch"),
        ("tags", pa.struct([("name", pa.string())]), r"'tags' is list<.*> in the table and struct<.*> in the batch"),
    ],
)
def test_types_of_which_neither_holds_the_other_are_refused_by_name(name: str, kind: pa.DataType, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        of((name, kind))


def test_a_type_that_no_table_holds_is_refused() -> None:
    with pytest.raises(UnsupportedTypeError, match="'since'"):
        of(("since", pa.duration("s")))
