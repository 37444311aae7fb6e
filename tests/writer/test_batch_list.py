"""Batches of all sizes gather; whatever is put together when, the rows stay in the order of their arrival."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_tables.writing import BucketedRows
from headgate_writer import batch_list
from headgate_writer.batch_list import BatchList, bundled


def filed(number: int, nbytes: int) -> BucketedRows:
    """One row of about so many bytes; its code is its number."""
    return BucketedRows(
        pa.table({"note": ["x" * nbytes]}), pa.array([str(number)]), pa.array([False]), np.array([number], np.int32)
    )


def numbers(batches: list[BucketedRows]) -> list[int]:
    return [int(code) for batch in batches for code in batch.codes]


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.one_of(st.sampled_from([1, 100, 700, 3_000]), st.none()), max_size=80),
    st.sampled_from([2, 3, 4]),
    st.sampled_from([500, 5_000]),
)
def test_rows_come_out_as_they_came_in(sizes: list[int | None], fan_in: int, bundle: int) -> None:
    """None: a flush takes everything, rows come meanwhile, and what it leaves goes back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_list, "_FAN_IN", fan_in)
        patch.setattr(batch_list, "_SMALL", 1_000)
        patch.setattr(batch_list, "_BUNDLE", bundle)
        gathered, number = BatchList(), 0
        for size in sizes:
            if size is None:
                older = gathered.take_all()
                for later in (5, 2_000):
                    gathered.add(filed(number, later))
                    number += 1
                gathered.prepend(bundled(older))
            else:
                gathered.add(filed(number, size))
                number += 1
        assert numbers(gathered.take_all()) == list(range(number))
        assert gathered.take_all() == []
        assert gathered.overhead == 0


@pytest.mark.parametrize("fan_in", [2, 3, 4])
def test_larger_batches_go_behind_the_smaller_ones_that_came_before_them(fan_in: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_list, "_FAN_IN", fan_in)
    monkeypatch.setattr(batch_list, "_SMALL", 1_000)
    for tiny in range(0, 40, 3):
        for larger in range(1, 6):
            gathered = BatchList()
            for number in range(tiny + larger):
                gathered.add(filed(number, 1 if number < tiny else 700))
            assert numbers(gathered.take_all()) == list(range(tiny + larger))


@pytest.mark.slow
def test_ten_thousand_tiny_batches_become_a_few() -> None:
    gathered = BatchList()
    for number in range(10_000):
        gathered.add(filed(number, 1))
    assert gathered.overhead < 100 * batch_list.COLUMN_OVERHEAD * 4
    assert numbers(gathered.take_all()) == list(range(10_000))


def test_small_batches_put_together_have_the_bytes_of_all_without_being_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes that their sender counted make them large: counted anew they would be few."""
    monkeypatch.setattr(batch_list, "_FAN_IN", 4)
    gathered = BatchList()
    for number in range(4):
        batch = filed(number, 1)
        batch.nbytes = batch_list._SMALL // 4
        gathered.add(batch)
    (merged,) = gathered.take_all()
    assert merged.nbytes == batch_list._SMALL
