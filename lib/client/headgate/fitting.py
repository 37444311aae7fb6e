"""Which Python values fit a column. Arrow alone takes more, and changes some silently: 5 becomes a moment of 1970, "abc" a list.

The rules. What is not named here is refused, with the next step.

- None, ``pandas.NaT`` and ``pandas.NA`` are null. NaN is a value of floats alone.
- Enum members count as their values, numpy's and Arrow's scalars as Python's.
- Integers take whole floats and Decimals. float64 takes integers that it holds exactly; float32 takes its nearest value,
  and refuses those beyond its range. Decimals take integers, and no value with more digits than the column.
- Timestamps take datetimes with a zone, and keep the instant. Those without one are refused, as are digits below the column's
  unit (a ``pandas.Timestamp`` has nanoseconds). Dates take datetimes of exactly midnight.
- Text takes str, and UUIDs in their usual form; binary takes bytes, bytearray, memoryview, and UUIDs as 16 bytes.
- Lists take sequences and arrays, but no text, set or mapping. Structs take dicts, dataclasses, NamedTuples, attrs and pydantic
  objects with exactly the struct's fields; maps take dicts with text as keys.

Arrow data (``headgate.values``) keeps to the same kinds, with three differences: no float is rounded to float32; a timestamp
without a zone is UTC's, as tables store it, and a date among timestamps its midnight; a time of day goes into an integer column.
"""

import datetime
import decimal
import enum
import math
import uuid
from collections.abc import Sequence
from typing import Any, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc

_EXACT = decimal.Context(prec=1_000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_MOST_DIGITS = 20
"""More than any integer of 64 bits has; those of Decimal("1e999999999") would fill the memory."""


class UnfitValueError(Exception):
    """Internal: ``why`` a value does not fit, what to do, and ``where`` in a nested value it is (``.x``, ``[2]``)."""

    def __init__(self, why: str, fix: str = "", where: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.fix = fix
        self.where = where


class Fit(Protocol):
    """What values of one type of column may be. ``safe``: the types of values that Arrow never changes."""

    safe: frozenset[type] = frozenset((type(None),))

    def takes(self, values: Sequence[object]) -> bool:
        """Whether Arrow converts each of them without a change, or refuses it. A False is no refusal: ``fit`` decides."""

    def fit(self, value: object) -> object:
        """What Arrow gets for the value. Raises UnfitValueError."""


class Scalars(Fit):
    """Columns without fields or elements; a subclass for each kind."""

    as_is: frozenset[type]
    """The types of values that Arrow gets; also of those of which ``takes`` looks at each."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        if type(self).takes is Scalars.takes:
            self.safe = self.as_is

    def takes(self, values: Sequence[object]) -> bool:
        return self.as_is.issuperset(map(type, values))

    def fit(self, value: object) -> object:
        value = simple(value)
        if isinstance(value, float) and math.isnan(value) and float not in self.as_is:
            raise UnfitValueError("NaN is a value of floats alone", "Give None where a value is missing.")
        return None if value is None else self.converted(value)

    def converted(self, value: object) -> object:
        """As ``fit``, for a value that is simple and not None."""
        if type(value) not in self.as_is:
            raise UnfitValueError(f"it is of type {type(value).__name__}")
        return value


class Anything(Scalars):
    """A type that no table of this version stores: Arrow decides."""

    def takes(self, values: Sequence[object]) -> bool:  # noqa: ARG002
        return True

    def fit(self, value: object) -> object:
        return value


class Booleans(Scalars):
    """Booleans; no numbers."""

    as_is = frozenset((bool, type(None)))


class Integers(Scalars):
    """Integers of any width; Arrow refuses those out of range."""

    as_is = frozenset((int, type(None)))

    def converted(self, value: object) -> object:
        if isinstance(value, datetime.time):
            raise UnfitValueError(
                "it is a time of day", "Give it as the column counts: microseconds since midnight, or milliseconds."
            )
        if isinstance(value, float) and not value.is_integer():
            raise _not_whole()
        if isinstance(value, decimal.Decimal):
            if not value.is_finite() or value != value.to_integral_value():
                raise _not_whole()
            if value.adjusted() >= _MOST_DIGITS:
                raise UnfitValueError("it has more digits than an integer column", "Store it in a column of decimals.")
        return int(value) if isinstance(value, (float, decimal.Decimal)) else super().converted(value)


def _not_whole() -> UnfitValueError:
    return UnfitValueError("it is no whole number", "Give int(value), or store it in a column of float64.")


class Floats(Scalars):
    """float64, which has every Python float; integers that it cannot hold are refused by Arrow."""

    as_is = frozenset((float, int, type(None)))

    def converted(self, value: object) -> object:
        if isinstance(value, decimal.Decimal):
            raise UnfitValueError("a Decimal would be rounded", "Give float(value), or store it in a column of decimals.")
        return super().converted(value)


class NarrowFloats(Floats):
    """float32, to which Arrow would make infinite what is too large."""

    as_is = frozenset((float, type(None)))

    def takes(self, values: Sequence[object]) -> bool:
        if not super().takes(values):
            return False
        wide = pa.array(values, pa.float64())
        narrow = wide.cast(pa.float32(), safe=False)
        return not any(pc.any(pc.not_equal(of_kind(wide), of_kind(narrow))).as_py() for of_kind in (pc.is_inf, _is_zero))

    def converted(self, value: object) -> object:
        if type(value) is int and abs(value) <= 2**24:
            return float(value)
        if type(value) is float and not self.takes([value]):
            raise UnfitValueError("it is beyond the range of float32", "Store it in a column of float64.")
        return super().converted(value)


class Decimals(Scalars):
    """Decimals; Arrow refuses those with too many digits."""

    as_is = frozenset((decimal.Decimal, int, type(None)))

    def __init__(self, kind: "pa.Decimal128Type[Any, Any]") -> None:
        super().__init__(kind)
        self.precision, self.scale = kind.precision, kind.scale

    def converted(self, value: object) -> object:
        if isinstance(value, float):
            raise UnfitValueError("a float is no exact decimal", "Give decimal.Decimal(str(value)).")
        if isinstance(value, decimal.Decimal):
            self._check_digits(value)
        return super().converted(value)

    def _check_digits(self, value: decimal.Decimal) -> None:
        if not value.is_finite():
            raise UnfitValueError("it is not a number", "Give None where a value is missing.")
        unscaled = _EXACT.scaleb(value, self.scale)
        if unscaled != _EXACT.to_integral_value(unscaled):
            fix = f"Give round(value, {self.scale})."
            raise UnfitValueError(f"it has more than {self.scale} digits after the point", fix)
        if abs(unscaled) >= 10**self.precision:
            fix = "Store it in a column of decimals with more digits."
            raise UnfitValueError(f"it has more than {self.precision - self.scale} digits before the point", fix)


class Texts(Scalars):
    """Text, into which Arrow would make bytes."""

    as_is = frozenset((str, type(None)))

    def converted(self, value: object) -> object:
        match value:
            case uuid.UUID():
                return str(value)
            case bytes() | bytearray() | memoryview():
                raise UnfitValueError("it is bytes, not text", "Decode it: value.decode().")
            case datetime.date() | datetime.time():
                raise UnfitValueError(f"it is of type {type(value).__name__}", "Give its text: value.isoformat().")
            case _:
                return super().converted(value)


class Binaries(Scalars):
    """Bytes, into which Arrow would make text."""

    as_is = frozenset((bytes, type(None)))

    def converted(self, value: object) -> object:
        match value:
            case uuid.UUID():
                return value.bytes
            case bytearray() | memoryview():
                return bytes(value)
            case str():
                raise UnfitValueError("it is text, not bytes", "Encode it: value.encode().")
            case _:
                return super().converted(value)


def _is_zero(values: "pa.Array[Any]") -> "pa.BooleanArray":
    return pc.equal(values, pa.scalar(0, values.type))


def simple(value: object) -> object:
    """Python's own value for one of an Enum, numpy, Arrow or a subclass of str, int, float or bytes; None for pandas' gaps.

    numpy's datetime64 stays: Python has no nanoseconds.
    """
    kind = type(value)
    if isinstance(value, enum.Enum):
        return simple(value.value)
    if kind.__module__.partition(".")[0] == "pandas" and kind.__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, pa.Scalar):
        return simple(value.as_py())
    if kind.__module__ == "numpy" and hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0:
        return value if kind.__name__ in ("datetime64", "timedelta64", "longdouble") else cast("Any", value).item()
    match value:
        case str():
            return str.__str__(value)
        case float():
            return float.__float__(value)
        case bytes():
            return bytes(memoryview(value))
        case int() if kind is not bool:
            return int.__int__(value)
        case _:
            return value
