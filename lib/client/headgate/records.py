"""Rows and nested values that are objects: dicts, dataclasses, NamedTuples, attrs classes and pydantic models, as mappings."""

import dataclasses
import functools
import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard, cast

from headgate.errors import InvalidArgumentError, RowError

MOST_CLASSES = 256
"""Of rows that are remembered: some programs make a class for each query."""
_KINDS = "dicts, dataclasses, tuples, attrs or pydantic objects"


def field_names(kind: type) -> tuple[str, ...] | None:
    """The attributes that hold a class's values, in their order; None for a class whose objects are no records.

    Pydantic's are the fields' names, not their aliases. Neither pydantic nor attrs is imported.
    """
    return _found_names(cast("Hashable", kind))


@functools.lru_cache(MOST_CLASSES)
def _found_names(kind: Any) -> tuple[str, ...] | None:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if issubclass(kind, tuple):
        return tuple(kind._fields) if hasattr(kind, "_fields") else None
    if hasattr(kind, "__attrs_attrs__"):
        return tuple(attribute.name for attribute in kind.__attrs_attrs__)
    for fields in ("__pydantic_fields__", "__fields__"):  # of version 2, of version 1
        if isinstance(getattr(kind, fields, None), dict):
            return tuple(getattr(kind, fields))
    return None


def mapping_of(value: object) -> Mapping[str, object] | None:
    """The value's fields by name, with the extra ones of a pydantic model; None if it is no record."""
    if isinstance(value, Mapping):
        return value
    names = field_names(type(value))
    if names is None:
        return None
    return {**{name: getattr(value, name) for name in names}, **(getattr(value, "__pydantic_extra__", None) or {})}


def listed(data: object) -> list[object]:
    """The rows as a list; a single row becomes a list of one. Raises InvalidArgumentError for what holds no rows.

    A plain tuple is a row, or a sequence of rows when it has nothing but what can be rows.
    """
    if is_record(data) or (type(data) is tuple and not all(is_record(each) or isinstance(each, (tuple, list)) for each in data)):
        return [data]
    if isinstance(data, (str, bytes, type)) or not isinstance(data, Iterable):
        raise InvalidArgumentError(
            f"{type(data).__name__} holds no rows",
            fix=f"Pass a list of {_KINDS}, a pyarrow Table or RecordBatchReader, or a pandas or polars DataFrame.",
        )
    return list(data)


def is_record(value: object) -> bool:
    """Whether it has values with names."""
    return isinstance(value, Mapping) or (not isinstance(value, type) and field_names(type(value)) is not None)


def mappings(rows: Sequence[object], first: int, names_of_tuples: Sequence[str] | None) -> Sequence[Mapping[str, object]]:
    """The rows as dicts; ``names_of_tuples``: the columns of which plain tuples have the values, None: they are no rows.

    Raises RowError for one that is no record, or is of another class than those before it.
    """
    if _are_dicts(rows):
        return rows
    if _are_mappings(rows):
        return [dict(row) for row in rows]
    kind = type(rows[0])
    if kind is tuple and names_of_tuples is not None:
        return _named(rows, first, names_of_tuples)
    names = field_names(kind)
    if not names or any(type(row) is not kind for row in rows):
        at = next(at for at, row in enumerate(rows) if not isinstance(row, Mapping))
        raise RowError(
            f"row {first + at} is a {type(rows[at]).__name__}", fix=f"Pass {_KINDS}, all rows of one class.",
            row=first + at, column="",
        )  # fmt: skip
    if hasattr(kind, "__pydantic_extra__"):
        return [mapping_of(row) or {} for row in rows]
    values = operator.attrgetter(*names, names[0])  # with two names at least it returns a tuple
    return [dict(zip(names, values(row), strict=False)) for row in rows]


def _named(rows: Sequence[object], first: int, names: Sequence[str]) -> Sequence[Mapping[str, object]]:
    for at, row in enumerate(rows, first):
        if type(row) is not tuple or len(row) != len(names):
            raise RowError(
                f"row {at} is no tuple of {len(names)} values",
                fix=f"Tuples hold the table's columns in their order: {', '.join(names)}.",
                row=at,
                column="",
            )
    return [dict(zip(names, cast("tuple[object, ...]", row), strict=True)) for row in rows]


def _are_dicts(rows: Sequence[object]) -> TypeGuard[Sequence[dict[str, object]]]:
    return {dict} == set(map(type, rows))


def _are_mappings(rows: Sequence[object]) -> TypeGuard[Sequence[Mapping[str, object]]]:
    return all(isinstance(row, Mapping) for row in rows)
