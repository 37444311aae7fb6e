"""Random tables for Hypothesis: definitions, rows, and calls on them. How hard to try is said here too.

Keys, partitions and orderings come from small pools, so that rows meet.
"""

import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from support.kinds import BOOLEAN, DATES, INTEGERS, STRINGS, Kind, key_kinds, kinds, maybe, ordering_kinds, plain

Row = dict[str, Any]
Draw = Any
"""Hypothesis' draw function."""

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example]
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True, suppress_health_check=_SLOW)
settings.register_profile("long", deadline=None, print_blob=True, suppress_health_check=_SLOW)
LONG = os.environ.get("HEADGATE_HYPOTHESIS", "") == "long"
if not LONG:
    # Hypothesis also draws constants of this project's modules, of those that are loaded: the examples would not stay the same.
    vars(providers)["is_local_module_file"] = lambda _path: False


def effort(examples: int, steps: int = 10) -> settings:
    """Settings of a test: ``examples``, always the same; with HEADGATE_HYPOTHESIS=long 40 times as many, each time others."""
    profile = settings.get_profile("long" if LONG else "ci")
    return settings(profile, max_examples=examples * (40 if LONG else 1), stateful_step_count=steps * (2 if LONG else 1))


def new_folder() -> "tempfile.TemporaryDirectory[str]":
    """In memory where there is such a place: a file costs a third of what it costs on a disk. What syncs are for, test_crash.py
    looks at.
    """
    return tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)


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
        others = {name: maybe(column.kind.values, column.nullable) for name, column in self.columns.items() if name not in taken}
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
    return st.sampled_from([plain(kind.given, folders, pa.string()) for kind in STRINGS] * 2 + [*INTEGERS, DATES[0], BOOLEAN])


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
    shape = Shape(
        columns, record_key, partition_by, ordering, draw(st.sampled_from([1, 1, 2, 3, 4])), hive_style, url_encode, (), (), ()
    )
    keys = {
        name: maybe(columns[name].kind.values.filter(_tells_keys_apart(named)), columns[name].nullable and named)
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
) -> Any:
    """Distinct combinations of a few values of each column, so that rows are alike in one and differ in another."""

    def distinct(stored: Callable[[Any], Any]) -> Callable[[Any], str]:
        return lambda found: repr(stored(found))

    few = {}
    for name, one in values.items():
        kind = shape.columns[name].kind
        size = most if len(values) == 1 else 3
        few[name] = st.sampled_from(draw(st.lists(one, min_size=1, max_size=size, unique_by=distinct(kind.stored_value))))
    return draw(
        st.lists(
            st.fixed_dictionaries(few).filter(allowed),
            min_size=1,
            max_size=most,
            unique_by=distinct(lambda row: sorted(shape.stored(row).items())),
        )
    )


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
