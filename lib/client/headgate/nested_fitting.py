"""Which Python values fit lists, structs and maps, and the ``Fit`` of every type of column."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, cast

import pyarrow as pa
import pyarrow.types as pat

from headgate import fitting, time_fitting
from headgate.fitting import Fit, UnfitValueError, simple
from headgate.records import field_names, mapping_of

_NONE = type(None)


class Lists(Fit):
    """Sequences of a type of elements."""

    def __init__(self, item: Fit) -> None:
        self._item = item

    def takes(self, values: Sequence[object]) -> bool:
        if not {list, _NONE}.issuperset(map(type, values)):
            return False
        given = cast("Sequence[list[object] | None]", values)
        return self._item.takes(list(chain.from_iterable(filter(None, given))))

    def fit(self, value: object) -> object:
        value = simple(value)
        return None if value is None else [_within(f"[{at}]", self._item, each) for at, each in enumerate(_elements(value))]


class Structs(Fit):
    """Records with exactly the struct's fields: Arrow would drop others, and make null what is missing."""

    def __init__(self, fields: Mapping[str, Fit]) -> None:
        self._fields = fields

    def takes(self, values: Sequence[object]) -> bool:
        if not {dict, _NONE}.issuperset(map(type, values)):
            return False
        present = [value for value in cast("Sequence[dict[str, object] | None]", values) if value is not None]
        if not all(value.keys() == self._fields.keys() for value in present):
            return False
        return all(fit.takes([value[name] for value in present]) for name, fit in self._fields.items())

    def fit(self, value: object) -> object:
        value = simple(value)
        if value is None:
            return None
        fields = mapping_of(value)
        if fields is None:
            raise UnfitValueError(f"it is of type {type(value).__name__}", f"Give a dict with {', '.join(self._fields)}.")
        if missing := [name for name in self._fields if name not in fields]:
            raise UnfitValueError(f"it has no {missing[0]!r}", "Give every field; None means null.")
        if unknown := [name for name in fields if name not in self._fields]:
            raise UnfitValueError(f"it has {unknown[0]!r}, which is not a field", f"The fields are {', '.join(self._fields)}.")
        return {name: _within(f".{name}", fit, fields[name]) for name, fit in self._fields.items()}


class Maps(Fit):
    """Dicts, and lists of pairs, with text as keys."""

    def __init__(self, key: Fit, item: Fit) -> None:
        self._key = key
        self._item = item

    def takes(self, values: Sequence[object]) -> bool:
        return {_NONE}.issuperset(map(type, values))

    def fit(self, value: object) -> object:
        value = simple(value)
        if value is None:
            return None
        pairs = list(value.items()) if isinstance(value, Mapping) else self._pairs(value)
        fitted = [(_within("'s key", self._key, key), _within(f"[{key!r:.40}]", self._item, item)) for key, item in pairs]
        keys = {key for key, _ in fitted}
        if None in keys or len(keys) < len(fitted):
            raise UnfitValueError("a key is null or there twice", "Give each key once.")
        return fitted

    def _pairs(self, value: object) -> list[tuple[object, object]]:
        if not isinstance(value, (list, tuple)) or not all(isinstance(each, (list, tuple)) and len(each) == 2 for each in value):
            raise UnfitValueError(f"it is of type {type(value).__name__}", "Give a dict, or a list of pairs.")
        return [(key, item) for key, item in value]


def fit_of(kind: pa.DataType) -> Fit:
    """What values of this type of column may be."""
    if isinstance(kind, pa.StructType):
        return Structs({field.name: fit_of(field.type) for field in kind})
    if isinstance(kind, pa.MapType):
        return Maps(fit_of(kind.key_type), fit_of(kind.item_type))
    if isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
        return Lists(fit_of(kind.value_type))
    if isinstance(kind, pa.TimestampType):
        return time_fitting.Timestamps(kind)
    if isinstance(kind, pa.Decimal128Type):
        return fitting.Decimals(kind)
    kinds: dict[Callable[[pa.DataType], bool], type[fitting.Scalars]] = {
        pat.is_boolean: fitting.Booleans,
        pat.is_integer: fitting.Integers,
        pat.is_float32: fitting.NarrowFloats,
        pat.is_float64: fitting.Floats,
        pat.is_date32: time_fitting.Dates,
        pat.is_string: fitting.Texts,
        pat.is_binary: fitting.Binaries,
        pat.is_fixed_size_binary: fitting.Binaries,
    }
    return next((fit for is_kind, fit in kinds.items() if is_kind(kind)), fitting.Anything)(kind)


def _elements(value: object) -> Iterable[object]:
    """A list's, tuple's, array's or series' elements. Raises UnfitValueError for what has no order or is no list to people."""
    is_array = hasattr(value, "__array__") and hasattr(value, "__len__")
    is_sequence = isinstance(value, Sequence) and field_names(type(value)) is None
    if isinstance(value, (set, frozenset)):
        raise UnfitValueError("a set has no order", "Give sorted(value).")
    if isinstance(value, (str, bytes, bytearray, memoryview)) or not (is_array or is_sequence):
        raise UnfitValueError(f"it is of type {type(value).__name__}", "Give a list: [value].")
    return cast("Iterable[Any]", value)


def _within(where: str, fit: Fit, value: object) -> object:
    try:
        return fit.fit(value)
    except UnfitValueError as unfit:
        raise UnfitValueError(unfit.why, unfit.fix, where + unfit.where) from None
