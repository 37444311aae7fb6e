"""Random tables for Hypothesis: columns of every type that a table holds, keys, partitions, orderings, batches, filters.

A ``Kind`` knows the Arrow type that a caller hands in, the type that the table stores (by the rules, not by asking the
library), and the values of both. Keys, partitions and orderings come from small pools, so that rows meet.
"""

import datetime as dt
import operator
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

Row = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example]
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True, suppress_health_check=_SLOW)
settings.register_profile("long", deadline=None, print_blob=True, suppress_health_check=_SLOW)
LONG = os.environ.get("HEADGATE_HYPOTHESIS", "") == "long"


def effort(examples: int, steps: int = 10) -> settings:
    """Settings of a test: ``examples`` that are always the same, or 40 times as many random ones with HEADGATE_HYPOTHESIS=long."""
    profile = settings.get_profile("long" if LONG else "ci")
    return settings(profile, max_examples=examples * (40 if LONG else 1), stateful_step_count=steps * (2 if LONG else 1))


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


def _plain(kind: pa.DataType, values: st.SearchStrategy[Any], stored: pa.DataType | None = None) -> Kind:
    return Kind(kind, stored or kind, values)


def _timestamp(unit: str, zone: str | None) -> Kind:
    stored = pa.timestamp(unit, tz="UTC")
    return Kind(
        pa.timestamp(unit, tz=zone),
        stored,
        _moments(unit, dt.UTC if zone else None),
        lambda moment: moment.replace(tzinfo=dt.UTC),
    )


def _decimal(precision: int, scale: int) -> Kind:
    return _plain(pa.decimal128(precision, scale), _decimals(precision, scale))


_STRINGS = [
    _plain(kind, texts, pa.string())
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()))
]
_INTEGERS = [
    _plain(pa.int8(), _integers(8), pa.int32()),
    _plain(pa.int16(), _integers(16), pa.int32()),
    _plain(pa.int32(), _integers(32)),
    _plain(pa.int64(), _integers(64)),
]
_DATES = [_plain(pa.date32(), st.dates()), _plain(pa.date64(), st.dates(), pa.date32())]
_BOOLEAN = _plain(pa.bool_(), st.booleans())
_ODD_FLOATS = st.sampled_from([float("nan"), -0.0, 0.0, 1.5, float("inf"), float("-inf")])
_FLOATS = [_plain(kind, _ODD_FLOATS | _ODD_FLOATS | st.floats(width=kind.bit_width)) for kind in (pa.float32(), pa.float64())]
_BINARIES = [_plain(kind, st.binary(max_size=5), pa.binary()) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())]
_TIMES = [
    Kind(pa.time32("ms"), pa.int32(), _clock_times(1000), lambda time: _microseconds(time) // 1000),
    Kind(pa.time64("us"), pa.int64(), _clock_times(1), _microseconds),
]
_TIMESTAMPS = [_timestamp(unit, zone) for unit in ("ms", "us") for zone in (None, "UTC", "Europe/Paris")]

decimal_kinds = st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: _decimal(precision, scale))
)
fixed_kinds = st.integers(1, 4).map(lambda width: _plain(pa.binary(width), st.binary(min_size=width, max_size=width)))
leaf_kinds = (
    st.sampled_from([*_STRINGS, *_INTEGERS, *_DATES, _BOOLEAN, *_FLOATS, *_BINARIES, *_TIMES, *_TIMESTAMPS])
    | decimal_kinds
    | fixed_kinds
)
key_kinds = st.sampled_from([*_STRINGS * 2, *_INTEGERS, _DATES[0], _BOOLEAN]) | decimal_kinds
ordering_kinds = st.sampled_from(
    [*_INTEGERS[2:], *_FLOATS, *_TIMESTAMPS[3:], *_DATES, _decimal(12, 3), _decimal(30, 15), _decimal(5, 5)]
)


def _maybe(values: st.SearchStrategy[Any], nullable: bool) -> st.SearchStrategy[Any]:
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
    values = st.lists(_maybe(inner.values, nullable), min_size=sizes[0], max_size=sizes[1])
    stored = pa.list_(pa.field("element", inner.stored, nullable=nullable))
    return Kind(makers[form], stored, values, lambda value: [inner.stored_value(part) for part in value])


def _map(inner: Kind, nullable: bool) -> Kind:
    values = st.dictionaries(st.text("abc", max_size=2), _maybe(inner.values, nullable), max_size=3).map(
        lambda found: list(found.items())
    )
    given = pa.map_(pa.string(), pa.field("value", inner.given, nullable=nullable))
    stored = pa.map_(pa.string(), pa.field("value", inner.stored, nullable=nullable))
    return Kind(given, stored, values, lambda value: [(name, inner.stored_value(part)) for name, part in value])


def _struct(parts: Sequence[tuple[Kind, bool]]) -> Kind:
    named = {f"f{n}": part for n, part in enumerate(parts)}
    given = pa.struct([pa.field(name, kind.given, nullable=nullable) for name, (kind, nullable) in named.items()])
    stored = pa.struct([pa.field(name, kind.stored, nullable=nullable) for name, (kind, nullable) in named.items()])
    values = st.fixed_dictionaries({name: _maybe(kind.values, nullable) for name, (kind, nullable) in named.items()})
    return Kind(given, stored, values, lambda value: {name: named[name][0].stored_value(part) for name, part in value.items()})


def _nested(inner: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    return (
        st.builds(_list, inner, st.booleans(), st.sampled_from(["list", "large", "view", "large view", "fixed"]))
        | st.builds(_map, inner, st.booleans())
        | st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3).map(_struct)
    )


kinds = leaf_kinds | st.recursive(leaf_kinds, _nested, max_leaves=4)
"""Any column."""


# --- tables ---


@dataclass(frozen=True)
class Column:
    """A column of a random table; ``pool`` (given values) when it is part of the key, a partition or the ordering."""

    kind: Kind
    nullable: bool


@dataclass(frozen=True)
class Shape:
    """A table's definition and where its rows come from. Rows are as given; ``stored`` says what the table holds for one."""

    columns: dict[str, Column]
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering: str | None
    buckets: int
    hive_style: bool
    url_encode: bool
    keys: Sequence[Row]
    partitions: Sequence[Row]
    orderings: Sequence[Row]

    @property
    def given_schema(self) -> pa.Schema:
        return pa.schema([pa.field(name, column.kind.given, nullable=column.nullable) for name, column in self.columns.items()])

    @property
    def stored_schema(self) -> pa.Schema:
        return pa.schema([pa.field(name, column.kind.stored, nullable=column.nullable) for name, column in self.columns.items()])

    def definition(self) -> dict[str, Any]:
        """Arguments of ``create_table``."""
        names = ("record_key", "partition_by", "ordering", "buckets", "hive_style", "url_encode")
        return {"schema": self.given_schema, **{name: getattr(self, name) for name in names}}

    def named(self, kind: str) -> list[str]:
        """The columns that a call of this kind hands in."""
        taken = {*self.record_key, *self.partition_by, self.ordering}
        return [name for name in self.columns if kind == "upsert" or name in taken]

    def stored(self, row: Row) -> Row:
        """The values that the table holds for a given row (or some of its columns)."""
        return {name: self.columns[name].kind.stored_value(value) for name, value in row.items()}

    def expected(self, rows: Sequence[Row]) -> pa.Table:
        """Stored rows as the table that a reader has to give."""
        return pa.Table.from_pylist(list(rows), self.stored_schema)

    def identities(self) -> st.SearchStrategy[Row]:
        """Key, partition and ordering columns of one row."""
        parts = [st.sampled_from(pool) for pool in (self.keys, self.partitions, self.orderings)]
        return st.tuples(*parts).map(lambda found: {name: value for part in found for name, value in part.items()})

    def rows(self) -> st.SearchStrategy[Row]:
        """One row as given."""
        taken = self.named("delete")
        others = {name: _maybe(column.kind.values, column.nullable) for name, column in self.columns.items() if name not in taken}
        return st.tuples(self.identities(), st.fixed_dictionaries(others)).map(lambda parts: parts[0] | parts[1])


_NOT_IN_FOLDERS = frozenset("/=%:\\\"#'*?{[]^\x7f") | {chr(code) for code in range(0x20)}
_ODD_FOLDERS = [
    "a b",
    ".x",
    "_y",
    "a+b",
    "ünï",
    "日本",
    "%41",
    "a=b",
    "a/b",
    "a:b",
    "x%2Fy",
    "{z}",
    "\U0001f600",
    "#",
    "C",
    "c",
    "..a",
    "2026-11-20",
    "\n",
]


def folder_texts(url_encode: bool) -> st.SearchStrategy[str]:
    """Texts that a partition column may hold: encoded ones may be nearly anything."""
    found = st.sampled_from(_ODD_FOLDERS) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
    found = found.filter(lambda text: text not in ("", ".", "..") and "\x00" not in text and not text.startswith(".hoodie"))
    return found if url_encode else found.filter(lambda text: not _NOT_IN_FOLDERS & set(text))


def _partition_kinds(url_encode: bool) -> st.SearchStrategy[Kind]:
    folders = folder_texts(url_encode)
    return st.sampled_from(
        [_plain(kind.given, folders, pa.string()) for kind in _STRINGS] * 2 + [*_INTEGERS, _DATES[0], _BOOLEAN]
    )


def _tells_keys_apart(name_of_more: bool) -> Callable[[Any], bool]:
    """Texts that Hudi's joined keys can hold; a single key column only has to hold something."""
    odd = re.compile("(?s)__null__|__empty__|.*,(k[0-9]|p[0-9]):.*")
    return lambda value: not isinstance(value, str) or (not odd.fullmatch(value) if name_of_more else bool(value))


@st.composite
def shapes(draw: Draw, orderings: st.SearchStrategy[Kind] = ordering_kinds, *, max_others: int = 4) -> Shape:
    """A random table definition with its pools."""
    url_encode, hive_style = draw(st.booleans()), draw(st.booleans())
    columns: dict[str, Column] = {}
    for n in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        columns[f"p{n}"] = Column(draw(_partition_kinds(url_encode)), draw(st.booleans()))
    partition_by = tuple(columns)
    own_keys = draw(st.integers(1, 3))
    shared = partition_by[: draw(st.integers(0, len(partition_by)))] if draw(st.integers(0, 4)) == 0 else ()
    named = own_keys + len(shared) > 1
    for n in range(own_keys):
        columns[f"k{n}"] = Column(draw(key_kinds), draw(st.booleans()))
    record_key = tuple(draw(st.permutations([*(f"k{n}" for n in range(own_keys)), *shared])))
    ordering = None
    if draw(st.integers(0, 3)):
        ordering = "o"
        columns[ordering] = Column(draw(orderings), draw(st.booleans()))
    for n in range(draw(st.integers(0, max_others))):
        columns[f"c{n}"] = Column(draw(kinds), draw(st.booleans()))
    columns = {name: columns[name] for name in draw(st.permutations(list(columns)))}
    shape = Shape(columns, record_key, partition_by, ordering, draw(st.sampled_from([1, 1, 2, 3, 4])), hive_style, url_encode, (), (), ())
    keys = {
        name: _maybe(columns[name].kind.values.filter(_tells_keys_apart(named)), columns[name].nullable and named)
        for name in (f"k{n}" for n in range(own_keys))
    }
    return replace(
        shape,
        keys=draw(_pool(shape, keys, 6, lambda row: bool(shared) or any(value not in (None, "") for value in row.values()))),
        partitions=draw(_pool(shape, {name: columns[name].kind.values for name in partition_by}, 4)),
        orderings=draw(_pool(shape, {name: columns[name].kind.values for name in columns if name == ordering}, 5)),
    )


@st.composite
def _pool(
    draw: Draw,
    shape: Shape,
    values: dict[str, st.SearchStrategy[Any]],
    most: int,
    allowed: Callable[[Row], bool] = lambda row: True,
) -> Sequence[Row]:
    """Distinct combinations of a few values of each column, so that rows are alike in one and differ in another."""

    def distinct(stored: Callable[[Any], Any]) -> Callable[[Any], str]:
        return lambda found: repr(stored(found))

    few = {}
    for name, one in values.items():
        kind = shape.columns[name].kind
        size = most if len(values) == 1 else 3
        few[name] = st.sampled_from(draw(st.lists(one, min_size=1, max_size=size, unique_by=distinct(kind.stored_value))))
    return draw(st.lists(st.fixed_dictionaries(few).filter(allowed), min_size=1, max_size=most, unique_by=distinct(shape.stored)))


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a stored leaf type."""
    for known in (*_STRINGS, *_INTEGERS, *_FLOATS, *_DATES, *_TIMESTAMPS):
        if known.given == known.stored == kind:
            return known.values
    return _decimals(kind.precision, kind.scale)


def safe_for_deletes(kind: Kind) -> Kind:
    """Without the ordering value that Hudi's delete records cannot tell from "none": 0 in 32 bits."""
    if kind.stored == pa.int32():
        return Kind(kind.given, kind.stored, kind.values.filter(bool), kind.store)
    if kind.stored == pa.date32():
        return Kind(kind.given, kind.stored, kind.values.filter(lambda day: day != dt.date(1970, 1, 1)), kind.store)
    return kind


# --- what callers hand in ---

forms = st.sampled_from(["whole", "chunks", "slice", "reader", "columns the other way round", "as stored", "batch"])


def calls_on(shape: Shape, *, least: int = 0) -> st.SearchStrategy[tuple[str, list[Row], str]]:
    """Kind of call, rows as given (at least so many, and seldom none), and the form in which they are handed in."""
    sizes = st.sampled_from([(least, 2), (3, 8), (3, 8)])

    def rows(one: st.SearchStrategy[Row]) -> st.SearchStrategy[list[Row]]:
        return sizes.flatmap(lambda size: st.lists(one, min_size=size[0], max_size=size[1]))

    upserts = st.tuples(st.just("upsert"), rows(shape.rows()), forms)
    deletes = st.tuples(st.just("delete"), rows(shape.identities()), forms)
    return upserts | upserts | deletes


def present(shape: Shape, rows: Sequence[Row], names: Sequence[str], form: str) -> Any:
    """The rows (as given) in one of the forms in which Arrow data may come."""
    schema = shape.given_schema
    if form == "as stored":
        rows, schema = [shape.stored(row) for row in rows], shape.stored_schema
    schema = pa.schema([schema.field(name) for name in names])
    rows = [{name: row[name] for name in names} for row in rows]
    if form == "slice" and rows:
        return pa.Table.from_pylist([rows[-1], *rows, rows[0]], schema).combine_chunks().slice(1, len(rows))
    table = pa.Table.from_pylist(rows, schema)
    if form == "columns the other way round":
        return table.select(list(reversed(names)))
    if form == "chunks" and rows:
        return pa.concat_tables([part for n in range(len(rows)) for part in (table.slice(n, 1), table.slice(0, 0))])
    if form == "reader":
        return pa.RecordBatchReader.from_batches(schema, table.to_batches(max_chunksize=2))
    if form == "batch" and rows:
        return table.combine_chunks().to_batches()[0]
    return table


# --- what readers ask for ---

_COMPARISONS: list[Callable[[Any, Any], Any]] = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def expressions(rows: pa.Table, often: Sequence[str]) -> st.SearchStrategy[pc.Expression]:
    """Filters over the columns of ``rows``, every second time over those ``often`` asked for.

    Most literals are values that are there, so that something matches.
    """
    about = {name: _about(name, rows) for name in rows.column_names}
    leaves = st.one_of([about[name] for name in often]) | st.one_of(list(about.values()))
    leaves |= leaves.map(operator.inv)
    pairs = st.tuples(st.sampled_from([operator.and_, operator.or_]), leaves, leaves).map(lambda drawn: drawn[0](drawn[1], drawn[2]))
    return leaves | pairs | pairs.map(operator.inv) | st.tuples(pairs, pairs).map(lambda both: both[0] & both[1])


def _about(name: str, rows: pa.Table) -> st.SearchStrategy[pc.Expression]:
    column, kind = pc.field(name), rows.schema.field(name).type
    found = st.sampled_from([column.is_null(), column.is_valid()])
    if pa.types.is_nested(kind):
        return found
    values = _literals(name, rows)
    if pa.types.is_boolean(kind):
        found |= st.just(column)
    if pa.types.is_floating(kind):
        found |= st.sampled_from([pc.is_nan(column), column.is_null(nan_is_null=True)])
    compared = st.tuples(st.sampled_from(_COMPARISONS), values).map(lambda drawn: drawn[0](column, pa.scalar(drawn[1], kind)))
    others = [pc.field(other) for other in rows.column_names if other != name and rows.schema.field(other).type == kind]
    if others:
        found |= st.tuples(st.sampled_from(_COMPARISONS), st.sampled_from(others)).map(lambda drawn: drawn[0](column, drawn[1]))
    listed = st.lists(st.none() | values, max_size=3).map(lambda chosen: column.isin(pa.array(chosen, kind)))
    return found | compared | compared | listed


def _literals(name: str, rows: pa.Table) -> st.SearchStrategy[Any]:
    present = [value for value in rows[name].to_pylist() if value is not None]
    kind = rows.schema.field(name).type
    more: list[Any] = [float("nan"), 0.0, -0.0] if pa.types.is_floating(kind) else [0, 1] if pa.types.is_integer(kind) else []
    return st.sampled_from(present + more) if present or more else st.none()
