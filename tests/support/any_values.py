"""Python values of any kind, those that programs put into rows and those that they should not."""

import datetime as dt
import enum

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from support.every_kind import SpotAttrs, SpotData, SpotModel, SpotTuple


class Size(enum.IntEnum):
    BIG = 40


class Word(enum.Enum):
    YES = "yes"


_numbers = st.one_of(
    st.integers(-(2**70), 2**70),
    st.sampled_from([2**24 + 1, 2**31, 2**53 + 1, 2**63, -(2**63), 0, 1]),
    st.floats(),
    st.floats(width=32),
    st.sampled_from([1e300, -1e300, 1e-300, 3.4028235e38, 3.5e38, 1e-45, -0.0]),
    st.decimals(places=2, min_value=-(10**9), max_value=10**9),
    st.decimals(),
    st.integers(-(2**31), 2**31 - 1).map(np.int64),
    st.integers(0, 255).map(np.uint8),
    st.floats(width=32).map(np.float32),
    st.floats().map(np.float64),
)
_moments = st.datetimes(dt.datetime.fromisoformat("0002-01-01"), dt.datetime.fromisoformat("9998-01-01"))
_zones = st.sampled_from(
    [None, dt.UTC, dt.timezone(dt.timedelta(hours=-5, minutes=30)), dt.timezone(dt.timedelta(microseconds=5))]
)
_times = st.one_of(
    st.builds(lambda moment, zone: moment.replace(tzinfo=zone), _moments, _zones),
    st.builds(lambda day, zone: dt.datetime.combine(day, dt.time(), zone), st.dates(), _zones),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.builds(lambda ns, zone: pd.Timestamp(ns, tz=zone), st.integers(-(10**18), 10**18), st.sampled_from([None, "UTC"])),
    st.builds(
        lambda us, unit: np.datetime64(us, "us").astype(f"datetime64[{unit}]"), st.integers(0, 10**15), st.sampled_from("Dsm")
    ),
    st.sampled_from([pd.NaT, np.datetime64("NaT"), np.datetime64("2026-01-01"), np.datetime64(1, "ns")]),
)
_texts = st.one_of(
    st.text(max_size=5),
    st.binary(max_size=16),
    st.binary(min_size=16, max_size=16),
    st.uuids(),
    st.text(max_size=3).map(np.str_),
    st.binary(max_size=3).map(bytearray),
    st.sampled_from(["2026-01-01", "1", "true", "abc"]),
)
SCALARS = st.one_of(
    _numbers, _times, _texts, st.booleans(), st.booleans().map(np.bool_), st.sampled_from([None, pd.NA, Size.BIG, Word.YES])
)
_spots = st.one_of(
    st.fixed_dictionaries({"x": SCALARS, "y": SCALARS}, optional={"z": SCALARS}),
    st.builds(SpotTuple, _numbers, st.none() | _numbers),
    st.builds(SpotData, st.floats(), st.integers(-5, 5)),
    st.builds(SpotAttrs, st.floats(), st.integers(-5, 5)),
    st.builds(lambda x, y: SpotModel(x=x, y=y), st.floats(), st.integers(-5, 5)),
    st.dictionaries(st.sampled_from("xyz"), st.integers(-5, 5)),
)
_of_one_kind = st.sampled_from([_texts, _numbers, _times, _spots, st.integers(-5, 5), st.text(max_size=3)])
NESTED = st.one_of(
    _spots,
    _of_one_kind.flatmap(lambda kind: st.lists(kind, max_size=3)),
    _of_one_kind.flatmap(lambda kind: st.lists(kind, max_size=3).map(tuple)),
    st.lists(st.integers(-5, 5), max_size=3).map(np.array),
    st.sets(st.integers(-5, 5), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(-5, 5) | SCALARS, max_size=2),
    st.lists(st.tuples(st.text(max_size=2), st.integers(-5, 5)), max_size=2),
)
