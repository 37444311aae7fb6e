"""Fingerprints: the same for equal keys wherever they stand, another for nearly every other key."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate_tables.hudi.keys import fingerprint
from headgate_tables.hudi.keys.fingerprint import fingerprints
from support.kinds import texts
from support.strategies import effort


@effort(200)
@given(keys=st.lists(texts, max_size=12), place=st.integers(0, 11), before=st.lists(texts, max_size=3))
def test_a_key_has_one_fingerprint_whatever_stands_around_it(keys: list[str], place: int, before: list[str]) -> None:
    array = pa.array([*before, *keys], pa.string()).slice(len(before))
    found = fingerprints(array).tolist()
    assert len(found) == len(keys)
    if keys:
        chosen = keys[place % len(keys)]
        assert fingerprints(pa.array([chosen]))[0] == found[place % len(keys)]
        assert fingerprints(pa.array([chosen, "x" * 40, ""]))[0] == found[place % len(keys)]


def test_keys_of_one_length_and_of_many_are_told_apart() -> None:
    for many in (
        [f"evt-{number:017}" for number in range(50_000)],
        [f"{number:x}" * (number % 5) + f":{number}" for number in range(50_000)],
        ["\0" * number for number in range(40)],
        ["a" * number for number in range(40)],
    ):
        assert len(set(fingerprints(pa.array(many, pa.string())).tolist())) == len(set(many))


def test_chunks_do_not_show() -> None:
    keys = pa.array([f"k{number}" for number in range(3 * fingerprint._CHUNK)])
    whole = fingerprints(keys).tolist()
    assert whole[::5000] == [fingerprints(keys.slice(at, 1))[0] for at in range(0, len(keys), 5000)]
