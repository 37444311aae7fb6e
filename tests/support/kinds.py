"""Column types for Hypothesis: what callers hand in, what a table stores for it (by the rules, the library is not asked)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa
from hypothesis import strategies as st


@dataclass(frozen=True, repr=False)
class Kind:
    """A column's type: as given, as stored, Python values of the given one, and what a given value is stored as."""

    given: pa.DataType
    stored: pa.DataType
    values: st.SearchStrategy[Any]
    store: Callable[[Any], Any] = lambda value: value

    def __repr__(self) -> str:
        return str(self.given)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # Hypothesis would print the strategies

    def stored_value(self, value: Any) -> Any:
        """None stays None."""
        return None if value is None else self.store(value)


# --- values ---

_ODD_TEXT = [
    "",
    " ",
    "a,b:c",
    "k0:1,k1:2",
    "null",
    "None",
    "a\x00b",
    "%2F",
    "é",
    "e\u0301",
    "\uffff",
    "\U0001f600",
    "x" * 300,
    "0",
    "01",
    "A",
    "a",
]
texts = st.sampled_from(_ODD_TEXT) | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


def _integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return st.integers(-3, 3) | st.integers(low, high) | st.sampled_from([low, high])


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    unscaled = st.integers(-most, most) | st.integers(max(-most, -200), min(most, 200))
    return unscaled.map(lambda number: Decimal((int(number < 0), tuple(int(digit) for digit in str(abs(number))), -scale)))


def _moments(unit: str, zone: dt.tzinfo | None) -> st.SearchStrategy[dt.datetime]:
    step = 1000 if unit == "ms" else 1
    cut = st.datetimes().map(lambda moment: moment.replace(microsecond=moment.microsecond // step * step))
    return cut.map(lambda moment: moment.replace(tzinfo=zone))


def _clock_times(step: int) -> st.SearchStrategy[dt.time]:
    return st.times().map(lambda time: time.replace(microsecond=time.microsecond // step * step))


def _microseconds(time: dt.time) -> int:
    return ((time.hour * 60 + time.minute) * 60 + time.second) * 1_000_000 + time.microsecond


def plain(kind: pa.DataType, values: st.SearchStrategy[Any], stored: pa.DataType | None = None) -> Kind:
    return Kind(kind, stored or kind, values)


def _timestamp(unit: Literal["ms", "us"], zone: str | None) -> Kind:
    stored = pa.timestamp(unit, tz="UTC")
    return Kind(
        pa.timestamp(unit, tz=zone),
        stored,
        _moments(unit, dt.UTC if zone else None),
        lambda moment: moment.replace(tzinfo=dt.UTC),
    )


def _decimal(precision: int, scale: int) -> Kind:
    return plain(pa.decimal128(precision, scale), _decimals(precision, scale))


STRINGS = [
    plain(kind, texts, pa.string())
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()))
]
INTEGERS = [
    plain(pa.int8(), _integers(8), pa.int32()),
    plain(pa.int16(), _integers(16), pa.int32()),
    plain(pa.int32(), _integers(32)),
    plain(pa.int64(), _integers(64)),
]
DATES = [plain(pa.date32(), st.dates()), plain(pa.date64(), st.dates(), pa.date32())]
BOOLEAN = plain(pa.bool_(), st.booleans())
_ODD_FLOATS = st.sampled_from([float("nan"), -0.0, 0.0, 1.5, float("inf"), float("-inf")])
_FLOATS = [
    plain(pa.float32(), _ODD_FLOATS | _ODD_FLOATS | st.floats(width=32)),
    plain(pa.float64(), _ODD_FLOATS | _ODD_FLOATS | st.floats()),
]
_BINARIES = [plain(kind, st.binary(max_size=5), pa.binary()) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())]
_TIMES = [
    Kind(pa.time32("ms"), pa.int32(), _clock_times(1000), lambda time: _microseconds(time) // 1000),
    Kind(pa.time64("us"), pa.int64(), _clock_times(1), _microseconds),
]
_UNITS: tuple[Literal["ms", "us"], ...] = ("ms", "us")
_TIMESTAMPS = [_timestamp(unit, zone) for unit in _UNITS for zone in (None, "UTC", "Europe/Paris")]


def _safe_for_deletes(kind: Kind) -> Kind:
    """Without the ordering value that Hudi's delete records cannot tell from "none": 0 in 32 bits."""
    if kind.stored == pa.int32():
        return replace(kind, values=kind.values.filter(bool))
    if kind.stored == pa.date32():
        return replace(kind, values=kind.values.filter(lambda day: day != dt.date(1970, 1, 1)))
    return kind


decimal_kinds = st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: _decimal(precision, scale))
)
fixed_kinds = st.integers(1, 4).map(lambda width: plain(pa.binary(width), st.binary(min_size=width, max_size=width)))
leaf_kinds = (
    st.sampled_from([*STRINGS, *INTEGERS, *DATES, BOOLEAN, *_FLOATS, *_BINARIES, *_TIMES, *_TIMESTAMPS])
    | decimal_kinds
    | fixed_kinds
)
key_kinds = st.sampled_from([*STRINGS * 2, *INTEGERS, DATES[0], BOOLEAN]) | decimal_kinds
ordering_kinds = st.sampled_from(
    [*INTEGERS[2:], *_FLOATS, *_TIMESTAMPS[3:], *DATES, _decimal(12, 3), _decimal(30, 15), _decimal(5, 5)]
).map(_safe_for_deletes)


def maybe(values: st.SearchStrategy[Any], nullable: bool) -> st.SearchStrategy[Any]:
    return st.none() | values if nullable else values


def _list(inner: Kind, nullable: bool, form: str) -> Kind:
    item = pa.field("item", inner.given, nullable=nullable)
    makers: dict[str, pa.DataType] = {
        "list": pa.list_(item),
        "large": pa.large_list(item),
        "view": pa.list_view(item),
        "large view": pa.large_list_view(item),
        "fixed": pa.list_(item, 2),
    }
    sizes = (2, 2) if form == "fixed" else (0, 3)
    values = st.lists(maybe(inner.values, nullable), min_size=sizes[0], max_size=sizes[1])
    stored = pa.list_(pa.field("element", inner.stored, nullable=nullable))
    return Kind(makers[form], stored, values, lambda value: [inner.stored_value(part) for part in value])


def _map_type(value: Any) -> pa.DataType:
    return pa.map_(pa.string(), value)


def _map(inner: Kind, nullable: bool) -> Kind:
    values = st.dictionaries(st.text("abc", max_size=2), maybe(inner.values, nullable), max_size=3).map(
        lambda found: list(found.items())
    )
    given, stored = (_map_type(pa.field("value", kind, nullable=nullable)) for kind in (inner.given, inner.stored))
    return Kind(given, stored, values, lambda value: [(name, inner.stored_value(part)) for name, part in value])


def _struct(parts: Sequence[tuple[Kind, bool]]) -> Kind:
    named = {f"f{n}": part for n, part in enumerate(parts)}
    given = pa.struct([pa.field(name, kind.given, nullable=nullable) for name, (kind, nullable) in named.items()])
    stored = pa.struct([pa.field(name, kind.stored, nullable=nullable) for name, (kind, nullable) in named.items()])
    values = st.fixed_dictionaries({name: maybe(kind.values, nullable) for name, (kind, nullable) in named.items()})
    return Kind(given, stored, values, lambda value: {name: named[name][0].stored_value(part) for name, part in value.items()})


def _nested(inner: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    return (
        st.builds(_list, inner, st.booleans(), st.sampled_from(["list", "large", "view", "large view", "fixed"]))
        | st.builds(_map, inner, st.booleans())
        | st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3).map(_struct)
    )


kinds = leaf_kinds | st.recursive(leaf_kinds, _nested, max_leaves=4)
"""Any column."""


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a stored leaf type (an Arrow type)."""
    for known in (*STRINGS, *INTEGERS, *_FLOATS, *DATES, *_TIMESTAMPS):
        if known.given == known.stored == kind:
            return known.values
    return _decimals(kind.precision, kind.scale)
