"""The merge by fingerprints against the merge kernel, with good fingerprints and with bad ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_tables.hudi.keys.fingerprint import Fingerprints, fingerprints
from headgate_tables.hudi.merge import Entries, merge_base, merge_logs
from headgate_tables.hudi.services.compaction.key_index import KeyIndex
from support.strategies import effort


def lengths_alone(keys: pa.Array[Any]) -> Fingerprints:
    return np.array([len(key) for key in keys.to_pylist()], dtype=np.uint64) << np.uint64(60)


def all_alike(keys: pa.Array[Any]) -> Fingerprints:
    return np.full(len(keys), 7, dtype=np.uint64)


def all_above(keys: pa.Array[Any]) -> Fingerprints:
    return fingerprints(keys) | np.uint64(0xFFFFFFFFFFFF0000)


KINDS: list[Callable[[Any], Fingerprints]] = [fingerprints, lengths_alone, all_alike, all_above]
KEYS = st.text("ab", max_size=4)


@st.composite
def merges(draw: Any) -> tuple[Entries, list[str], list[int | None]]:
    """Entries of logs, and keys and ordering values of base rows."""
    event_time = draw(st.booleans())
    one = st.tuples(KEYS, st.integers(0, 3), st.booleans(), st.integers(0, 3))
    drawn = draw(st.lists(one, max_size=20))
    unconditional = [delete and odd == 0 and event_time for _, _, delete, odd in drawn]
    ordering = [None if free else value for (_, value, _, _), free in zip(drawn, unconditional, strict=True)]
    entries = Entries(
        pa.array([key for key, _, _, _ in drawn], pa.string()),
        pa.array(ordering, pa.int64()) if event_time else None,
        np.array([delete for _, _, delete, _ in drawn], dtype=bool),
        np.array(unconditional, dtype=bool),
    )
    base = draw(st.lists(KEYS, max_size=12))
    return entries, base, draw(st.lists(st.none() | st.integers(0, 3), min_size=len(base), max_size=len(base)))


@pytest.mark.slow
@pytest.mark.parametrize("of", KINDS)
@effort(150)
@given(merge=merges())
def test_fingerprints_give_what_the_kernel_gives(
    of: Callable[[Any], Fingerprints], merge: tuple[Entries, list[str], list[int | None]]
) -> None:
    entries, base, values = merge
    keys = pa.array(base, pa.string())
    ordering = pa.array(values, pa.int64()) if entries.ordering is not None else None
    index, winners = KeyIndex(entries, of), merge_logs(entries)
    assert standing(index.winners) == standing(winners)
    found, wanted = index.merge_base(keys, ordering), merge_base(winners, keys, ordering)
    assert found.keep.tolist() == wanted.keep.tolist()
    for name in ("beaten", "beating"):
        ours = index.winners.keys.take(pa.array(getattr(found, name))).to_pylist()
        theirs = winners.keys.take(pa.array(getattr(wanted, name))).to_pylist()
        assert sorted(ours) == sorted(theirs)


def standing(winners: Any) -> dict[str, tuple[int, bool]]:
    """The entry of each key and whether it is a delete."""
    entries = zip(winners.positions.tolist(), winners.deletes.tolist(), strict=True)
    return dict(zip(winners.keys.to_pylist(), entries, strict=True))
