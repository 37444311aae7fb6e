"""A table's columns after an alteration."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables.errors import OptionError, SchemaError, UnsupportedTypeError
from headgate_tables.face.altering import Alteration
from headgate_tables.hudi.schema.altered import altered, changes, holds_all
from headgate_tables.hudi.schema.canonical import table_schema
from headgate_tables.hudi.schema.conform import stored_rows

SPOT = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.int32(), nullable=False)])
SCHEMA = table_schema(
    pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("n", pa.int32()),
            pa.field("f", pa.float32(), nullable=False),
            pa.field("price", pa.decimal128(5, 2)),
            pa.field("spot", SPOT),
            pa.field("spots", pa.list_(SPOT)),
            pa.field("tags", pa.list_(pa.int32())),
            pa.field("counts", pa.map_(pa.string(), pa.int32())),
        ]
    )
)
FIXED = {"id"}


def after(alteration: Alteration) -> pa.Schema:
    return altered(SCHEMA, alteration, FIXED)


def add(**types: pa.DataType) -> Alteration:
    return Alteration(add={name.replace("__", "."): kind for name, kind in types.items()})


def widen(**types: pa.DataType) -> Alteration:
    return Alteration(widen={name.replace("__", "."): kind for name, kind in types.items()})


def test_a_new_column_stands_behind_the_others_and_may_be_null() -> None:
    assert after(add(gate=pa.string())) == SCHEMA.append(pa.field("gate", pa.string()))


def test_a_new_column_has_the_type_that_tables_store() -> None:
    assert after(add(small=pa.int8(), at=pa.timestamp("s"))).types[-2:] == [pa.int32(), pa.timestamp("ms", tz="UTC")]
    with pytest.raises(UnsupportedTypeError, match="'big' has the Arrow type uint64"):
        after(add(big=pa.uint64()))


def test_a_new_field_stands_behind_the_others_of_its_struct_at_any_depth() -> None:
    longer = pa.struct([*(SPOT.field(at) for at in range(2)), pa.field("z", pa.string())])
    assert after(add(spot__z=pa.string())).field("spot").type == longer
    assert after(add(spots__element__z=pa.string())).field("spots").type.value_type == longer


def test_what_is_widened_inside_lists_maps_and_structs_keeps_its_place_and_the_rest() -> None:
    long = pa.int64()
    found = after(widen(spot__x=long, spots__element__y=long, tags__element=long, counts__value=long, n=long))
    assert found.names == SCHEMA.names
    assert found.field("n").type == long
    assert found.field("spot").type.field("x") == pa.field("x", long)
    assert found.field("spots").type.value_type.field("y") == pa.field("y", long, nullable=False)
    assert found.field("tags").type.value_type == long
    assert found.field("counts").type.item_type == long


def test_a_column_that_may_be_null_from_now_on_keeps_its_type() -> None:
    found = after(Alteration(nullable=["f", "spot.y"]))
    assert found.field("f") == pa.field("f", pa.float32())
    assert found.field("spot").type.field("y") == pa.field("y", pa.int32())


NARROW_AND_WIDE = [
    (pa.int32(), pa.int64()),
    (pa.int32(), pa.float64()),
    (pa.float32(), pa.float64()),
    (pa.decimal128(5, 2), pa.decimal128(9, 2)),
]
KINDS = [
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(5, 2),
    pa.decimal128(9, 2),
    pa.decimal128(9, 3),
    pa.string(),
    pa.binary(),
    pa.bool_(),
    pa.date32(),
    pa.timestamp("ms", tz="UTC"),
    pa.timestamp("us", tz="UTC"),
]


def test_only_a_type_that_holds_every_older_value_is_wider() -> None:
    assert [(narrow, wide) for narrow in KINDS for wide in KINDS if holds_all(narrow, wide)] == NARROW_AND_WIDE


@pytest.mark.parametrize(
    ("alteration", "message", "fix"),
    [
        (add(n=pa.string()), "has a column 'n' already, of type int32, not string", "Widen it"),
        (add(N=pa.string()), "'n' and 'N' have the same name", "Rename"),
        (add(spot__x=pa.string()), "has a column 'spot.x' already", "Widen it"),
        (add(n__x=pa.string()), "'n' is int32, which has no fields", "struct"),
        (add(spat__x=pa.string()), "no column 'spat'", "Did you mean 'spot'"),
        (Alteration(add={"a b": pa.string()}), "a name that Avro does not allow", "letters"),
        (Alteration(add={"": pa.string()}), "a name that Avro does not allow", "letters"),
        (add(_hoodie_x=pa.string()), "a name that Hudi reserves", "Rename"),
        (widen(m=pa.int64()), "no column 'm'", "Names there: id, n,"),
        (widen(n=pa.string()), "'n' is int32 and cannot become string", "add a column"),
        (widen(spot=pa.int64()), "cannot become int64", "add a column"),
        (widen(tags__item=pa.int64()), "no column 'tags.item'", "element"),
        (widen(n__x=pa.int64()), "no column 'n.x'", "none"),
        (widen(id=pa.binary()), "'id' is a part of the key, partition or ordering", "Create a table"),
        (Alteration(nullable=["id"]), "'id' is a part of the key, partition or ordering", "Create a table"),
        (Alteration(nullable=["gate"]), "no column 'gate'", "Names there"),
    ],
    ids=str,
)
def test_any_other_change_is_refused_with_what_to_do(alteration: Alteration, message: str, fix: str) -> None:
    with pytest.raises(SchemaError) as refused:
        after(alteration)
    assert message in refused.value.message
    assert fix in refused.value.fix


@pytest.mark.parametrize(
    ("given", "message", "fix"),
    [
        ({"add": {"q": "int"}}, "add gives 'q' the type 'int'", r"such as pyarrow.int64\(\)"),
        ({"widen": {"n": "long"}}, "widen gives 'n' the type 'long'", r"such as pyarrow.int64\(\)"),
        ({"widen": {"n": pa.field("n", pa.int64())}}, "widen gives 'n' the type pyarrow.Field", "Pass a type of pyarrow"),
        ({"add": ["q"]}, r"add=\['q'\] gives no types", "Pass a mapping: add={'a': pyarrow.int64"),
        ({"add": {1: pa.int64()}}, "add has 1, which is no name", "as a text"),
        ({"nullable": [1]}, "nullable has 1, which is no name", "as a text"),
    ],
    ids=str,
)
def test_what_is_no_name_or_type_is_refused_with_what_to_pass(given: Any, message: str, fix: str) -> None:
    with pytest.raises(OptionError, match=message) as refused:
        after(Alteration(**given))
    assert re.search(fix, refused.value.fix)


def test_a_change_that_is_made_already_is_none() -> None:
    once = Alteration({"gate": pa.string(), "spot.z": pa.int8()}, {"n": pa.int64()}, ["f"])
    changed = after(once)
    assert altered(changed, once, FIXED) == changed
    assert not changes(changed, changed).changes
    assert after(Alteration(nullable=["n"], widen={"id": pa.string()})) == SCHEMA


def test_what_changes_is_told_by_paths_and_a_new_struct_without_its_fields() -> None:
    found = changes(
        SCHEMA,
        after(
            Alteration(
                {"gate": pa.string(), "spot.z": pa.int64(), "home": SPOT},
                {"n": pa.int64(), "tags.element": pa.float64()},
                ["f", "spots.element.y"],
            )
        ),
    )
    assert found.added == ["spot.z: int64", "gate: string", "home: struct<x: int32, y: int32 not null>"]
    assert found.widened == ["n: int32 to int64", "tags.element: int32 to double"]
    assert found.nullable == ["f", "spots.element.y"]
    assert found.instant == ""
    assert found.changes


def test_rows_of_before_a_widening_are_stored_in_the_wider_type_and_no_digit_is_lost() -> None:
    for narrow, wide in NARROW_AND_WIDE:
        largest = pa.array([2**31 - 1 if pa.types.is_integer(narrow) else 7], narrow)
        stored = stored_rows(pa.table({"c": largest}), pa.schema([("c", wide)]))
        assert stored["c"].to_pylist() == largest.to_pylist()
        assert stored.schema.field("c").type == wide
    for wide in (pa.float64(), pa.float32()):
        with pytest.raises(SchemaError, match="'c' is int64 and cannot become"):
            stored_rows(pa.table({"c": pa.array([2**53 + 1])}), pa.schema([("c", wide)]))
