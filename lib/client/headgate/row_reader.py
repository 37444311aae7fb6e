"""Reads rows that come one at a time: looks at each when it is called with, and puts many together as columns later.

A row is read into a tuple of its values, in the order of the columns. What is read is certain to fit: Arrow takes every value as
it is, none can be changed by the program any more, and the row is far below every limit. So nothing can go wrong later, when the
program could no longer tell which row is meant. What is not certain is not read, and goes the way of whole batches, which decide.

The look at each row is a function made for the format and the class of rows, as ``dataclasses`` make ``__init__``: calls for
each of 12 columns would take as long as all else together.
"""

import datetime
import decimal
import keyword
import zoneinfo
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

import pyarrow as pa
import pyarrow.types as pat

from headgate import fitting, time_fitting
from headgate.columns import Column
from headgate.fitting import Fit, UnfitValueError
from headgate.records import MOST_CLASSES, field_names, mapping_of

if TYPE_CHECKING:
    from headgate.values import Array

Values: TypeAlias = tuple[object, ...]


RowValues: TypeAlias = tuple[Values, int]
"""A row that was read, and its bytes in Arrow. No class: to make an object of one takes as long as five of the columns."""
_Read: TypeAlias = Callable[[object], RowValues | None]

_LARGE = 256 * 1024
"""Bytes of a row that is not read here: limits of rows and values are looked at for batches."""
_EXACT_INTEGERS = 2**53
_MOST_DIGITS = 38
"""Of Arrow's decimals."""
_UNCERTAIN = (KeyError, AttributeError, TypeError, ValueError, ArithmeticError)
"""What reading a row raises that lacks columns, has others, or holds values of types that the format has not."""
_NAMES: dict[str, object] = {
    "date": datetime.date,
    "datetime": datetime.datetime,
    "Decimal": decimal.Decimal,
    "utc": datetime.UTC,
    "timezone": datetime.timezone,
    "ZoneInfo": zoneinfo.ZoneInfo,
    "large": _LARGE,
    **{f"high{count}": decimal.Decimal(1).scaleb(count) for count in range(39)},
    **{f"low{count}": decimal.Decimal(-1).scaleb(count) for count in range(39)},
    **{f"step{count}": decimal.Decimal(1).scaleb(-count) for count in range(39)},
}


class RowReader:
    """Reads rows of one format. ``table_columns``: what plain tuples hold, in this order; None: they are no rows.

    ``needed``: columns that no row lacks. ``ignores_others``: whether rows may have more than the columns. ``operations``: what
    the last column has to hold one of, if it is that of the operations.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        needed: frozenset[str],
        never_null: frozenset[str],
        *,
        table_columns: Sequence[str] | None,
        ignores_others: bool,
        operations: Sequence[object] = (),
    ) -> None:
        self._names = [column.field.name for column in columns]
        self._columns = columns
        self._known = frozenset(self._names)
        self._needed = needed
        self._ignores_others = ignores_others
        self._table_columns = table_columns
        self._locals = [f"v{at}" for at in range(len(columns))]
        self._conditions = [
            _condition(column.fit, column.field.type, local, may_be_null=column.field.name not in never_null)
            for column, local in zip(columns, self._locals, strict=True)
        ]
        if operations:
            self._conditions[-1] += f" and ({' or '.join(f'{self._locals[-1]} == {each!r}' for each in operations)})"
        self._holds = [
            cast("Callable[[object], bool]", eval(f"lambda {local}: {condition}", _NAMES))  # noqa: S307 - text of this file
            for local, condition in zip(self._locals, self._conditions, strict=True)
        ]
        self._null_is_refused = [column.field.name in never_null for column in columns]
        self._operation_at = len(columns) - 1 if operations else None
        self._of_values = self._made(f"{', '.join(self._locals)}, = row", values="row")
        self._readers = _Readers(self._reader_of)

    def read(self, data: object) -> RowValues | None:
        """The row, or the only row of a list; None for all else, and for a row that is not certain to fit."""
        try:
            return self._readers[type(data)](data) or self._read_slowly(data)
        except _UNCERTAIN:
            return self._read_slowly(data)

    def batch(self, rows: Sequence[Values], schema: pa.Schema) -> pa.RecordBatch:
        """The rows that were read as one record batch."""
        columns: list[Array] = [
            pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _read_only_row(self, rows: object) -> RowValues | None:
        return self.read(rows[0]) if isinstance(rows, list) and len(rows) == 1 and type(rows[0]) is not list else None

    def _reader_of(self, kind: type) -> _Read:
        if kind is dict:
            guard = "" if self._ignores_others else f"len(row) == {len(self._columns)}"
            return self._made(self._loads("row[{!r}]".format), guard)
        if kind is list:
            return self._read_only_row
        if kind is tuple and self._table_columns is not None:
            local = dict(zip(self._names, self._locals, strict=True))
            loads = f"{', '.join(local.get(name, '_') for name in self._table_columns)}, = row"
            return self._made(loads, values="row" if list(self._table_columns) == self._names else "")
        names = field_names(kind)
        if names is None:
            return _is_uncertain
        if issubclass(kind, tuple) and list(names) == self._names:
            return self._of_values
        fits = self._needed.issubset(names) and (self._ignores_others or self._known.issuperset(names))
        are_plain = all(name.isidentifier() and not keyword.iskeyword(name) for name in names)
        if not fits or not are_plain or hasattr(kind, "__pydantic_extra__"):
            return _is_uncertain
        return self._made(self._loads(lambda name: f"row.{name}" if name in names else "None"))

    def _loads(self, value: Callable[[str], str]) -> str:
        return f"{', '.join(self._locals)}, = {', '.join(map(value, self._names))},"

    def _made(self, loads: str, guard: str = "", values: str = "") -> _Read:
        """A function that takes a row: ``loads`` assigns its values to the locals. ``values``: what is their tuple already."""
        texts = [self._locals[at] for at, column in enumerate(self._columns) if isinstance(column.fit, fitting.Texts)]
        bytes_ = [self._locals[at] for at, column in enumerate(self._columns) if isinstance(column.fit, fitting.Binaries)]
        fixed = sum(map(_width, (column.field.type for column in self._columns)))
        joined = ", ".join(self._locals)
        source = f"""
def read(row):
    {loads}
    if {" and ".join(f"({condition})" for condition in [guard or "True", *self._conditions])}:
        text = "".join(({"".join(f"{local} or ''," for local in texts)}))
        size = {fixed} + (len(text) if text.isascii() else len(text.encode())){"".join(f" + len({x} or b'')" for x in bytes_)}
        if size <= large:
            return {values or f"({joined},)"}, size
    return None
"""
        names = dict(_NAMES)
        exec(source, names)  # noqa: S102 - text of this file, and names as Python's own literals
        return cast("_Read", names["read"])

    def _read_slowly(self, row: object) -> RowValues | None:
        """A row that lacks columns, or has values that Arrow would change: these are fitted, each on its own."""
        if type(row) is tuple:
            if self._table_columns is None or len(row) != len(self._table_columns):
                return None
            row = dict(zip(self._table_columns, row, strict=True))
        fields = mapping_of(row)
        if fields is None or not self._needed <= fields.keys() or not (self._ignores_others or fields.keys() <= self._known):
            return None
        values = tuple(map(fields.get, self._names))
        try:
            if (certain := self._of_values(values)) is not None:
                return certain
        except _UNCERTAIN:
            pass
        return self._fitted(values)

    def _fitted(self, given: Values) -> RowValues | None:
        values, size = list(given), 0
        for at, (column, holds) in enumerate(zip(self._columns, self._holds, strict=True)):
            try:
                if not holds(values[at]):
                    if at == self._operation_at:
                        return None
                    values[at] = column.fit.fit(values[at])
                alone = pa.array([values[at]], column.field.type)
            except (UnfitValueError, pa.ArrowException, OverflowError, *_UNCERTAIN):
                return None
            if alone.null_count and self._null_is_refused[at]:
                return None
            size += alone.nbytes
        return (tuple(values), size) if size <= _LARGE else None


class _Readers(dict[type, _Read]):
    """How to read objects of each class, found out at the first of them."""

    def __init__(self, reader_of: Callable[[type], _Read]) -> None:
        super().__init__()
        self._reader_of = reader_of

    def __missing__(self, kind: type) -> _Read:
        if len(self) == MOST_CLASSES:
            self.clear()
        self[kind] = reader = self._reader_of(kind)
        return reader


def _is_uncertain(_: object) -> RowValues | None:
    """Of classes that are no rows, or are read slowly."""
    return None


def _condition(fit: Fit, kind: pa.DataType, value: str, *, may_be_null: bool) -> str:
    """An expression that is true only of values that the column stores as they are; of others it is false, or raises."""
    holds = _condition_of_values(fit, kind, value)
    return f"{holds} or {value} is None" if may_be_null else holds


def _condition_of_values(fit: Fit, kind: pa.DataType, value: str) -> str:
    match fit:
        case fitting.Booleans():
            return f"type({value}) is bool"
        case fitting.Integers():
            bits = kind.bit_width
            least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pat.is_signed_integer(kind) else (0, 2**bits - 1)
            return f"type({value}) is int and {least} <= {value} <= {most}"
        case fitting.NarrowFloats():
            return f"type({value}) is float and (1e-37 <= abs({value}) <= 3.4e38 or {value} == 0)"
        case fitting.Floats():
            exact = f"type({value}) is int and {-_EXACT_INTEGERS} < {value} < {_EXACT_INTEGERS}"
            return f"(type({value}) is float or {exact})"
        case fitting.Decimals():
            return _condition_of_decimals(fit, value)
        case fitting.Texts():
            return f"type({value}) is str"
        case fitting.Binaries():
            length = f" and len({value}) == {kind.byte_width}" if isinstance(kind, pa.FixedSizeBinaryType) else ""
            return f"type({value}) is bytes{length}"
        case time_fitting.Dates():
            return f"type({value}) is date"
        case time_fitting.Timestamps() if fit.has_zone and fit.unit != "ns":
            whole = f" and {value}.microsecond % {fit.step} == 0" if fit.step > 1 else ""
            return f"type({value}) is datetime and {_condition_of_zones(value)}{whole}"
        case _:
            return "False"


def _condition_of_zones(value: str) -> str:
    """Zones that Arrow can ask for every moment, and that are whole seconds away from UTC: it cuts off what is below."""
    zone = f"{value}.tzinfo"
    fixed = f"type({zone}) is timezone and not {value}.utcoffset().microseconds"
    return f"({zone} is utc or type({zone}) is ZoneInfo or {fixed})"


def _condition_of_decimals(fit: fitting.Decimals, value: str) -> str:
    """Within the digits before the point; behind it as many as the column has, or a whole multiple of the last of them.

    Arrow takes no more digits than its type has, not even of zeros.
    """
    digits, step, exponent = fit.precision - fit.scale, f"step{fit.scale}", f"{value}.as_tuple().exponent"
    is_whole = f"({digits - _MOST_DIGITS} <= {exponent} <= 0 and {value} % {step} == 0)"
    return f"type({value}) is Decimal and low{digits} < {value} < high{digits} and ({value}.same_quantum({step}) or {is_whole})"


def _width(kind: pa.DataType) -> int:
    """Bytes of a value, or of its offset, with validity."""
    try:
        return kind.bit_width // 8 + 1
    except ValueError:
        return 5
