"""The merge kernel against a loop that takes one entry after the other."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_tables.hudi.merge import Entries, latest_rows, merge_base, merge_logs
from support.kinds import values_of
from support.model import rank_of
from support.strategies import effort

FLOATS = st.sampled_from([pa.float32(), pa.float64()])
RANKED = FLOATS | st.sampled_from(
    [pa.int32(), pa.int64(), pa.string(), pa.date32(), pa.timestamp("us", tz="UTC"), pa.decimal128(12, 3)]
)
Entry = tuple[str, Any, bool, bool]
"""Key, ordering value, whether it is a delete, whether an unconditional one."""


@st.composite
def merges(draw: Any) -> tuple[pa.DataType | None, list[Entry], list[tuple[str, Any]]]:
    """The ordering's type (None with commit time), log entries, and base rows of distinct keys."""
    kind = draw(st.none() | RANKED | RANKED)
    values = st.just(None) if kind is None else st.sampled_from(draw(st.lists(values_of(kind), min_size=1, max_size=5)))
    one = st.tuples(st.sampled_from("abc"), values, st.booleans(), st.integers(0, 3))
    drawn = draw(st.integers(0, 14).flatmap(lambda size: st.lists(one, min_size=size, max_size=size)))
    entries = [(key, value, delete, delete and (kind is None or odd == 0)) for key, value, delete, odd in drawn]
    entries = [(key, None if unconditional else value, delete, unconditional) for key, value, delete, unconditional in entries]
    base = draw(st.dictionaries(st.sampled_from("abcdef"), st.none() | values, max_size=5))
    return kind, entries, list(base.items())


def fold(kind: pa.DataType | None, entries: Sequence[Entry], base: Sequence[tuple[str, Any]]) -> tuple[dict[str, int], set[str]]:
    """One entry after the other: position of the entry that stands for each key, and keys whose base row stands."""
    standing: dict[str, int] = {}
    for position, (key, value, _, unconditional) in enumerate(entries):
        held = standing.get(key)
        if held is None or kind is None or unconditional or entries[held][3] or rank_of(value) >= rank_of(entries[held][1]):
            standing[key] = position
    kept = set()
    for key, value in base:
        held = standing.get(key)
        if held is None or (
            kind is not None and value is not None and not entries[held][3] and rank_of(value) > rank_of(entries[held][1])
        ):
            kept.add(key)
    return standing, kept


@pytest.mark.slow
@effort(300)
@given(merge=merges())
def test_the_merge_kernel_does_what_a_loop_over_the_entries_does(
    merge: tuple[pa.DataType | None, list[Entry], list[tuple[str, Any]]],
) -> None:
    kind, entries, base = merge
    standing, kept = fold(kind, entries, base)
    ordering = None if kind is None else pa.array([value for _, value, _, _ in entries], kind)
    flags = [np.array([bool(entry[place]) for entry in entries], dtype=bool) for place in (2, 3)]
    winners = merge_logs(Entries(pa.array([entry[0] for entry in entries], pa.string()), ordering, *flags))
    assert dict(zip(winners.keys.to_pylist(), winners.positions.tolist(), strict=True)) == standing
    assert winners.deletes.tolist() == [entries[position][2] for position in winners.positions]
    keys = pa.array([key for key, _ in base], pa.string())
    outcome = merge_base(winners, keys, None if kind is None else pa.array([value for _, value in base], kind))
    assert {key for (key, _), keep in zip(base, outcome.keep.tolist(), strict=True) if keep} == kept
    assert {winners.keys[number].as_py() for number in outcome.beaten.tolist()} == kept & standing.keys()


@pytest.mark.slow
@effort(300)
@given(merge=merges())
def test_of_the_rows_of_one_batch_the_largest_and_then_the_last_stays(
    merge: tuple[pa.DataType | None, list[Entry], list[tuple[str, Any]]],
) -> None:
    kind, entries, _ = merge
    rows = [entry for entry in entries if not entry[3]]
    identity = np.unique([entry[0] for entry in rows], return_inverse=True)[1].astype(np.int64)
    ordering = None if kind is None else pa.array([entry[1] for entry in rows], kind)
    assert latest_rows(identity, ordering).tolist() == sorted(fold(kind, rows, [])[0].values())
