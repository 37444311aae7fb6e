"""Arrow data that is right but unusual: views of lists, values under nulls, dictionaries without values."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_tables.errors import SchemaError
from headgate_tables.hudi.schema.canonical import table_schema
from headgate_tables.hudi.schema.conform import stored_rows
from headgate_tables.hudi.schema.required import without_forbidden_nulls
from support.strategies import effort

REQUIRED = pa.field("d", pa.int64(), nullable=False)


def stored(column: pa.Array) -> pa.Array:
    table = pa.table({"c": column})
    rows = stored_rows(table, table_schema(table.schema))
    rows.validate(full=True)
    return rows["c"].combine_chunks()


@pytest.mark.parametrize("view", [pa.list_view, pa.large_list_view])
def test_a_list_view_keeps_its_values_also_when_they_lie_in_another_order(view: Any) -> None:
    lists = [[1, 2], None, [], [3]]
    assert stored(pa.array(lists, view(pa.int32()))).to_pylist() == lists
    assert stored(pa.array(lists, view(pa.int32())).slice(1)).to_pylist() == lists[1:]
    assert stored(pa.array([lists, None], view(view(pa.int32())))).to_pylist() == [lists, None]
    shuffled = pa.ListViewArray.from_arrays(
        pa.array([2, 0, 1], pa.int32()), pa.array([2, 3, 0], pa.int32()), pa.array([1, 2, 3, 4])
    )
    assert stored(shuffled).to_pylist() == [[3, 4], [1, 2, 3], []]


LAYOUTS = {
    "list": pa.list_,
    "large": pa.large_list,
    "fixed": lambda item: pa.list_(item, 2),
    "view": pa.list_view,
    "large view": pa.large_list_view,
}


@pytest.mark.parametrize("outer", LAYOUTS)
@pytest.mark.parametrize("inner", LAYOUTS)
def test_lists_of_any_layout_nest(outer: str, inner: str) -> None:
    pairs = LAYOUTS[inner](pa.field("item", pa.int32(), nullable=False))
    lists = [[[1, 2], None], None, [[3, 4], [5, 6]], [None, None]]
    column = pa.array(lists, LAYOUTS[outer](pairs))
    assert stored(column).to_pylist() == lists
    assert stored(column.slice(1, 2)).to_pylist() == lists[1:3]


@pytest.mark.parametrize("rows", [[None], [None, {"d": "a"}], []])
def test_a_dictionary_without_values_may_lie_under_null_structs(rows: list[Any]) -> None:
    assert stored(pa.array(rows, pa.struct([pa.field("d", pa.dictionary(pa.int32(), pa.string()))]))).to_pylist() == rows


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()], ids=str)
def test_a_dictionary_of_views_keeps_its_values(kind: pa.DataType) -> None:
    """polars has its categories so."""
    plain = pa.array([b"a", None, b"long enough for a view of its own", b"a"], pa.binary()).cast(kind)
    values = plain.unique().drop_null()
    view = pa.string_view() if kind == pa.string() else pa.binary_view()
    given = pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 0], pa.uint32()), values.cast(view))
    stored = stored_rows(
        pa.table({"c": given, "l": pa.ListArray.from_arrays([0, 1, 2, 3, 4], given)}),
        pa.schema([("c", kind), ("l", pa.list_(kind))]),
    )
    assert stored["c"].to_pylist() == plain.to_pylist()
    assert stored["l"].to_pylist() == [[each] for each in plain.to_pylist()]


def test_null_under_a_null_struct_is_no_value() -> None:
    structs = pa.StructArray.from_arrays([pa.array([None, 1])], fields=[REQUIRED], mask=pa.array([True, False]))
    rows = stored(structs)
    assert rows.to_pylist() == [None, {"d": 1}]
    pq.write_table(pa.table([rows], schema=pa.schema([pa.field("c", rows.type)])), pa.BufferOutputStream())


@pytest.mark.parametrize(
    ("path", "column"),
    [
        ("c.d", pa.StructArray.from_arrays([pa.array([1, None])], fields=[REQUIRED])),
        ("c.element", pa.ListArray.from_arrays([0, 2], pa.array([1, None]), type=pa.list_(REQUIRED))),
        ("c.value", pa.array([[("a", None)]], pa.map_(pa.string(), pa.int64())).cast(pa.map_(pa.string(), REQUIRED), safe=False)),
    ],
)
def test_null_inside_a_value_is_refused_where_the_type_forbids_it(path: str, column: pa.Array) -> None:
    with pytest.raises(SchemaError, match=f"'{path}' holds null"):
        stored(column)


# --- any nesting ---

Kinds = st.SearchStrategy[pa.DataType]


def nested(inner: Kinds) -> Kinds:
    part = st.tuples(inner, st.booleans())
    return (
        part.map(lambda p: pa.list_(pa.field("element", p[0], nullable=p[1])))
        | part.map(lambda p: pa.map_(pa.string(), pa.field("value", p[0], nullable=p[1])))
        | st.lists(part, min_size=1, max_size=2).map(
            lambda ps: pa.struct([pa.field(f"f{n}", p[0], nullable=p[1]) for n, p in enumerate(ps)])
        )
    )


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Null anywhere."""
    some: st.SearchStrategy[Any] = st.integers(0, 9)
    if isinstance(kind, pa.StructType):
        some = st.fixed_dictionaries({field.name: values(field.type) for field in kind})
    elif isinstance(kind, pa.MapType):
        some = st.dictionaries(st.text("ab", max_size=1), values(kind.item_type), max_size=2).map(
            lambda found: list(found.items())
        )
    elif isinstance(kind, pa.ListType):
        some = st.lists(values(kind.value_type), max_size=3)
    elif pa.types.is_string(kind):
        some = st.sampled_from(["x", "yy"])
    return st.none() | some | some | some


def breaks(value: Any, field: pa.Field) -> bool:
    """Whether null stands where the field or a part of it forbids that."""
    kind = field.type
    if value is None:
        return not field.nullable
    if isinstance(kind, pa.StructType):
        return any(breaks(value[part.name], part) for part in kind)
    if isinstance(kind, pa.MapType):
        return any(breaks(part, kind.item_field) for _, part in value)
    return isinstance(kind, pa.ListType) and any(breaks(part, kind.value_field) for part in value)


def lenient(kind: pa.DataType) -> pa.DataType:
    """The type with null allowed everywhere."""
    if isinstance(kind, pa.StructType):
        return pa.struct([pa.field(part.name, lenient(part.type)) for part in kind])
    if isinstance(kind, pa.MapType):
        return pa.map_(pa.string(), lenient(kind.item_type))
    return pa.list_(pa.field("element", lenient(kind.value_type))) if isinstance(kind, pa.ListType) else kind


def claimed(array: Any, kind: pa.DataType) -> Any:
    """The same buffers under the strict type, as producers hand them over that do not look."""
    if isinstance(kind, pa.StructType):
        parts = [claimed(array.field(n), part.type) for n, part in enumerate(kind)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if isinstance(kind, pa.MapType):
        parts = [array.keys, claimed(array.items, kind.item_type)]
        entries = pa.StructArray.from_arrays(parts, fields=[kind.key_field, kind.item_field])
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], offset=array.offset, children=[entries])
    if isinstance(kind, pa.ListType):
        items = claimed(array.values, kind.value_type)
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], offset=array.offset, children=[items])
    return array


@pytest.mark.slow
@effort(300)
@given(
    data=st.data(), kind=st.recursive(st.sampled_from([pa.int64(), pa.string()]), nested, max_leaves=4), nullable=st.booleans()
)
def test_null_is_refused_exactly_where_a_reader_would_see_it(data: st.DataObject, kind: pa.DataType, nullable: bool) -> None:
    rows = data.draw(st.lists(values(kind), max_size=5))
    cut = data.draw(st.integers(0, 1))
    schema = pa.schema([pa.field("c", kind, nullable=nullable)])
    table = pa.table([claimed(pa.array(rows, lenient(kind)), kind).slice(cut)], schema=schema)
    if any(breaks(value, schema.field(0)) for value in rows[cut:]):
        with pytest.raises(SchemaError, match="holds null"):
            without_forbidden_nulls(table)
        return
    strict = without_forbidden_nulls(table)
    strict.validate(full=True)
    sink = pa.BufferOutputStream()
    pq.write_table(strict, sink)
    assert pq.read_table(pa.BufferReader(sink.getvalue()))["c"].to_pylist() == strict["c"].to_pylist() == rows[cut:]
