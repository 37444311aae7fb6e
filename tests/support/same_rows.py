"""Whether two readers gave the same rows: every value and every type, whatever their order and their chunks."""

from collections import Counter
from typing import Any

import pyarrow as pa


def assert_same_rows(found: pa.Table, wanted: pa.Table, who: str, *, fewer_types: bool = False) -> None:
    """``who`` gave ``found``. Columns go by name; types are compared without what readers call the parts of a list or a map.

    ``fewer_types``: a reader that, like Spark, knows neither milliseconds nor binary of fixed size, and shows their kin.
    """
    columns, wanted_columns = types(found, fewer=fewer_types), types(wanted, fewer=fewer_types)
    assert columns == wanted_columns, f"{who}: {set(columns.items()) ^ set(wanted_columns.items())}"
    rows, expected = frozen_rows(found), frozen_rows(wanted)
    if rows != expected:
        missing, surplus = list((expected - rows).elements()), list((rows - expected).elements())
        lines = [f"{who}: {found.num_rows} rows, expected {wanted.num_rows}"]
        lines += [f"  missing {row}" for row in sorted(missing, key=repr)[:5]] + [
            f"  surplus {row}" for row in sorted(surplus, key=repr)[:5]
        ]
        raise AssertionError("\n".join(lines))


def types(table: pa.Table, *, fewer: bool = False) -> dict[str, str]:
    """Column to the text of its type, columns sorted."""
    return {name: type_text(table.schema.field(name).type, fewer=fewer) for name in sorted(table.column_names)}


def type_text(kind: pa.DataType, *, fewer: bool) -> str:
    """Without nullability, metadata, and the names of list and map parts."""
    if isinstance(kind, pa.ListType | pa.LargeListType):
        return f"list<{type_text(kind.value_type, fewer=fewer)}>"
    if isinstance(kind, pa.MapType):
        return f"map<{type_text(kind.key_type, fewer=fewer)}, {type_text(kind.item_type, fewer=fewer)}>"
    if isinstance(kind, pa.StructType):
        parts = [kind.field(i) for i in range(kind.num_fields)]
        return f"struct<{', '.join(f'{part.name}: {type_text(part.type, fewer=fewer)}' for part in parts)}>"
    if pa.types.is_timestamp(kind):
        unit = "us" if fewer else kind.unit
        return f"timestamp {unit} {(kind.tz or 'local').replace('+00:00', 'UTC')}"
    return "binary" if fewer and pa.types.is_fixed_size_binary(kind) else str(kind)


def frozen_rows(table: pa.Table) -> Counter[Any]:
    """The rows as values that can be counted and that are equal when they mean the same: NaN equals NaN, -0.0 is not 0.0."""
    names = sorted(table.column_names)
    return Counter(tuple((name, _freeze(row[name])) for name in names) for row in table.select(names).to_pylist())


def _freeze(value: Any) -> Any:
    if isinstance(value, float):
        return ("float", value.hex())
    if isinstance(value, dict):
        return tuple((name, _freeze(part)) for name, part in value.items())
    if isinstance(value, list | tuple):
        return ("list", *(_freeze(part) for part in value))
    return value
