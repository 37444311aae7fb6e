"""Which values are none of their type: what Arrow finds when it looks at each, found for less."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate_tables.errors import SchemaError
from headgate_tables.hudi.schema.values import check_values


def texts(values: list[bytes | None]) -> pa.Array[Any]:
    """As text, whatever the bytes are."""
    made = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(made), made.buffers(), offset=made.offset)


def is_refused(column: pa.Array[Any]) -> bool:
    try:
        check_values(pa.table({"c": column}))
    except SchemaError:
        return True
    return False


@pytest.mark.parametrize("wrong", [b"\xff", b"Z\xfcrich", b"\x80", "ü".encode()[:1], "ü".encode()[1:]])
@pytest.mark.parametrize("others", [[b"a", b"b", None], [b"", b""], ["Zürich".encode()], []])
def test_a_text_that_is_not_utf8_is_found_wherever_it_is(wrong: bytes, others: list[bytes | None]) -> None:
    for at in range(len(others) + 1):
        column = texts([*others[:at], wrong, *others[at:]])
        assert is_refused(column)
        assert not is_refused(column[:at])
        assert not is_refused(column[at + 1 :])


def test_two_halves_of_a_character_are_no_text() -> None:
    first, second = "ü".encode()[:1], "ü".encode()[1:]
    assert is_refused(texts([first, second]))


@pytest.mark.parametrize("text", ["", "a", "plain \x00\x7f", "Zürich", "日本", "🙂"])
def test_texts_are_values(text: str) -> None:
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert not is_refused(pa.array([text, None, text], kind))
    assert not is_refused(pa.chunked_array([[text], [], [None], [text]], pa.string()).combine_chunks())


def test_texts_that_overlap_are_refused() -> None:
    buffers = [None, pa.py_buffer(np.array([0, 3, 1, 4], np.int32)), pa.py_buffer(b"abcd")]
    assert is_refused(pa.Array.from_buffers(pa.string(), 3, buffers))


def test_a_decimal_of_more_digits_than_its_type_is_found() -> None:
    fine = [decimal.Decimal("9.99"), None]
    large = pa.array([*fine, decimal.Decimal("10.00")], pa.decimal128(4, 2)).cast(pa.decimal128(3, 2), safe=False)
    assert is_refused(large)
    assert not is_refused(large[:2])
