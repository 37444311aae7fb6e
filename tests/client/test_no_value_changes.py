"""Whatever the SDK accepts comes back equal through hudi-rs, from Python rows and Arrow data; the rest is refused by name."""

import datetime as dt
import enum
import math
import pathlib
import uuid
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import RowError, SchemaError
from headgate.rows import RowFormat
from headgate_proto.api.v1 import ingest_pb2 as wire
from support.any_values import NESTED, SCALARS
from support.every_kind import INFO, SCHEMA, read_back, row
from support.strategies import effort, new_folder

UPSERT = RowFormat(INFO, wire.OPERATION_UPSERT)
COLUMNS = SCHEMA.names[1:]
SECONDS_OF_400_YEARS = 12_622_780_800


# --- Python values ---


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(COLUMNS), SCALARS | NESTED), min_size=20, max_size=60))
@effort(40)
def test_python_values_come_back_equal_or_are_refused(drawn: list[tuple[str, Any]]) -> None:
    accepted: dict[int, tuple[str, Any]] = {}
    for number, (column, value) in enumerate(drawn):
        try:
            list(UPSERT.convert([row(number, column, value)]))
        except RowError as refused:
            assert (refused.row, refused.column) == (0, column)  # noqa: PT017
        else:
            accepted[number] = (column, value)
    if not accepted:
        return
    with new_folder() as folder:
        rows = [row(number, *each) for number, each in accepted.items()]
        found = read_back(pathlib.Path(folder) / "t", SCHEMA, rows)
    for number, (column, value) in accepted.items():
        assert same(meant(column, value), found[number][column]), (column, value, found[number][column])


# --- Arrow data ---

_ints = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([0, 1, 255, 2**53, 86_400_000, 86_400_000_000])
_stamps = st.integers(-SECONDS_OF_400_YEARS, SECONDS_OF_400_YEARS)
_SOURCES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    *((kind, st.integers(0, 127)) for kind in (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.uint32(), pa.uint64())),
    (pa.int64(), _ints),
    (pa.uint64(), st.sampled_from([2**63, 2**64 - 1])),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.decimal128(12, 4), st.decimals(places=4, min_value=-(10**7), max_value=10**7, allow_nan=False)),
    (pa.decimal128(9, 2), st.decimals(places=2, min_value=-(10**6), max_value=10**6, allow_nan=False)),
    *((pa.timestamp(unit, zone), _stamps) for unit in ("s", "ms", "us") for zone in ("UTC", "Europe/Berlin", None)),
    (pa.timestamp("ns", "UTC"), st.integers(0, 10**15).map(lambda us: us * 1_000) | st.integers(0, 10**18)),
    (pa.date32(), st.dates()),
    (pa.date64(), st.dates()),
    (pa.time32("s"), st.integers(0, 86_399)),
    (pa.time32("ms"), st.integers(0, 86_399_999)),
    (pa.time64("us"), st.integers(0, 86_399_999_999)),
    (pa.time64("ns"), st.integers(0, 86_399_999_999).map(lambda us: us * 1_000)),
    (pa.duration("us"), _ints),
    (pa.bool_(), st.booleans()),
    *((kind, st.text(max_size=3)) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *((kind, st.binary(max_size=16)) for kind in (pa.binary(), pa.large_binary())),
    (pa.binary(16), st.binary(min_size=16, max_size=16)),
    (pa.null(), st.none()),
]


def _around(kind: tuple[pa.DataType, st.SearchStrategy[Any]]) -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    """The type alone, and in lists, structs, with other fields too, and maps."""
    source, values = kind
    both = {"x": st.none() | values, "y": st.none() | values}
    with_third = {**both, "z": st.none() | values}
    return st.sampled_from(
        [
            kind,
            (pa.list_(source), st.lists(values, max_size=3)),
            (pa.large_list(source), st.lists(values, max_size=3)),
            (pa.struct([("y", source), ("x", source)]), st.fixed_dictionaries(both)),
            (pa.struct([("x", source)]), st.fixed_dictionaries({"x": values})),
            (pa.struct([(name, source) for name in "xyz"]), st.fixed_dictionaries(with_third)),
            (
                pa.map_(pa.string(), source),
                st.dictionaries(st.text(max_size=2), values, max_size=2).map(lambda each: [*each.items()]),
            ),
        ]
    )


_arrays = (
    st.sampled_from(_SOURCES)
    .flatmap(_around)
    .flatmap(lambda kind: st.lists(st.none() | kind[1], min_size=1, max_size=3).map(lambda values: pa.array(values, kind[0])))
)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(COLUMNS), _arrays), min_size=20, max_size=60))
@effort(40)
def test_arrow_values_come_back_equal_or_are_refused(drawn: list[tuple[str, Any]]) -> None:
    batches: list[pa.RecordBatch] = []
    wanted: dict[int, tuple[str, Any]] = {}
    for column, values in drawn:
        numbers = range(len(wanted), len(wanted) + len(values))
        nothing = {name: pa.nulls(len(values), SCHEMA.field(name).type) for name in COLUMNS}
        try:
            batches += UPSERT.convert(pa.table({"id": pa.array(numbers, pa.int64()), **nothing, column: values}))
        except (RowError, SchemaError) as refused:
            assert repr(column) in str(refused)  # noqa: PT017
        else:
            wanted |= {number: (column, value.as_py()) for number, value in zip(numbers, values, strict=True)}
    if not batches:
        return
    with new_folder() as folder:
        found = read_back(pathlib.Path(folder) / "t", SCHEMA, batches)
    for number, (column, value) in wanted.items():
        assert same(meant(column, value), found[number][column]), (column, value, found[number][column])


# --- what is equal: nothing of the SDK is asked ---


def meant(column: str, value: Any) -> Any:
    """float32 has the nearest value."""
    return np.float32(value).item() if column == "narrow" and isinstance(value, (float, np.floating)) else value


def same(given: Any, found: Any) -> bool:
    """Whether a reader that finds ``found`` has what ``given`` says, by the rules that ``headgate.fitting`` states."""
    if isinstance(given, enum.Enum):
        return same(given.value, found)
    if isinstance(given, np.generic) and not isinstance(given, np.datetime64):
        return same(given.item(), found)
    if given is None or given is pd.NA or given is pd.NaT or (isinstance(given, np.datetime64) and np.isnat(given)):
        return found is None
    if isinstance(given, uuid.UUID):
        return found in (str(given), given.bytes)
    if isinstance(found, bool) or isinstance(given, bool):
        return given is found
    if isinstance(found, list):
        return _same_elements(given, found)
    if isinstance(found, dict):
        fields = given if isinstance(given, Mapping) else {name: getattr(given, name) for name in ("x", "y")}
        return fields.keys() == found.keys() and all(same(fields[name], found[name]) for name in found)
    if isinstance(found, dt.date):
        return _same_time(given, found)
    if isinstance(given, dt.time):
        since = (given.hour * 3600 + given.minute * 60 + given.second) * 10**6 + given.microsecond
        return found in (since, since / 1_000)
    if isinstance(found, float) and math.isnan(found):
        return isinstance(given, float) and math.isnan(given)
    return type(given) in _KIN[type(found)] and given == found


_KIN: dict[type, tuple[type, ...]] = {
    int: (int, float, Decimal),
    float: (int, float),
    Decimal: (int, Decimal),
    str: (str,),
    bytes: (bytes, bytearray, memoryview),
}


def _same_elements(given: Any, found: list[Any]) -> bool:
    if found and isinstance(found[0], tuple):  # a map
        pairs = [*given.items()] if isinstance(given, Mapping) else given
        return len(pairs) == len(found) and all(
            given_pair[0] == pair[0] and same(given_pair[1], pair[1]) for given_pair, pair in zip(pairs, found, strict=True)
        )
    assert isinstance(given, (list, tuple, np.ndarray)) or given == {}
    return len(given) == len(found) and all(same(*pair) for pair in zip(given, found, strict=True))


def _same_time(given: Any, found: dt.date) -> bool:
    """Exactly, to the nanosecond. A date in a column of timestamps, and Arrow's times without a zone, are UTC's."""
    if isinstance(given, dt.date) and not isinstance(given, dt.datetime):
        return given == (found if type(found) is dt.date else found.date() if found.time() == dt.time() else None)
    exact = pd.Timestamp(given) if not isinstance(given, dt.datetime) or isinstance(given, pd.Timestamp) else given
    if type(found) is dt.date:
        return bool(exact.time() == dt.time() and exact.date() == found and getattr(exact, "nanosecond", 0) == 0)
    return bool((exact if exact.tzinfo else exact.replace(tzinfo=dt.UTC)) == found)
