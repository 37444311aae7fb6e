"""Offsets of texts, lists and maps as clients send them: their buffers may be longer than their rows, by any number of bytes."""

import numpy as np
import pyarrow as pa
import pytest

from headgate_tables.arrow import offsets_of


@pytest.mark.parametrize("more", [0, 1, 2, 5])
@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize(("kind", "width"), [(pa.string(), np.int32), (pa.large_binary(), np.int64)], ids=str)
def test_offsets_are_as_many_as_the_rows_whatever_stands_behind_them(
    kind: pa.DataType, width: type[np.generic], offset: int, more: int
) -> None:
    content = np.array([0, 1, 3, 6], width).tobytes() + b"\xff" * more
    array = pa.Array.from_buffers(kind, 3 - offset, [None, pa.py_buffer(content), pa.py_buffer(b"abbccc")], offset=offset)
    assert offsets_of(array).tolist() == [0, 1, 3, 6][offset:]


def test_without_a_buffer_there_are_zeros() -> None:
    assert offsets_of(pa.Array.from_buffers(pa.string(), 0, [None, None, pa.py_buffer(b"")])).tolist() == [0]
