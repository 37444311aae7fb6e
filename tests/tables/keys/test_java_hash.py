import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_tables.errors import SchemaError, UnsupportedTypeError
from headgate_tables.hudi.keys.java_hash import java_string_hash


def in_java(text: str | None) -> int:
    """String.hashCode, one UTF-16 code unit after the other."""
    h = 0
    encoded = (text or "").encode("utf-16-le")
    for low, high in zip(encoded[::2], encoded[1::2], strict=True):
        h = (31 * h + low + 256 * high) & 0xFFFFFFFF
    return h - (1 << 32) if h >> 31 else h


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("abc", 96354),
        ("hello world", 1794106052),
        ("Aa", 2112),
        ("BB", 2112),
        ("polygenelubricants", -(2**31)),
        ("é", 233),
        ("😀", 1772899),
    ],
)
def test_a_string_hashes_as_in_java(text: str, expected: int) -> None:
    assert java_string_hash(pa.array([text])).tolist() == [expected]


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.none() | st.text()), st.integers(0, 5), st.integers(0, 5), st.sampled_from([pa.string(), pa.large_string()]))
def test_any_unicode_in_any_slice_hashes_as_in_java(texts: list[str | None], skip: int, drop: int, of: pa.DataType) -> None:
    values = pa.array(texts, of).slice(skip, max(0, len(texts) - skip - drop))
    hashes = java_string_hash(values)
    assert hashes.dtype == np.int32
    assert hashes.tolist() == [in_java(text) for text in values.to_pylist()]


@pytest.mark.parametrize("odd", ["a", "é", "漢", "😀", "\x00"])
@pytest.mark.parametrize(("shortest", "longest"), [(21, 21), (1, 1), (0, 40), (12, 30)])
@pytest.mark.parametrize("rows", [100, 4096, 9000])
def test_keys_of_one_length_and_of_many_hash_as_in_java(odd: str, shortest: int, longest: int, rows: int) -> None:
    rng = np.random.default_rng(rows + longest)
    alphabet = np.array([*"0123456789abcdef", odd])
    texts = ["".join(rng.choice(alphabet, length)) for length in rng.integers(shortest, longest + 1, rows)]
    assert java_string_hash(pa.array(texts)).tolist() == [in_java(text) for text in texts]


@pytest.mark.parametrize("length", [65_535, 65_536, 65_537, 200_003])
@pytest.mark.parametrize("character", ["x", "я"])
def test_a_key_longer_than_a_block_hashes_as_in_java_and_so_do_its_neighbours(length: int, character: str) -> None:
    texts = ["first", "", "0123456789" * 6000, "ab" + character * length, "", "last"]
    assert java_string_hash(pa.array(texts)).tolist() == [in_java(text) for text in texts]


def test_a_dictionary_hashes_as_its_values() -> None:
    texts = ["é", None, "b", "é", "a long one"]
    assert java_string_hash(pa.array(texts).dictionary_encode()).tolist() == [in_java(text) for text in texts]
    assert java_string_hash(pa.array([None, None], pa.dictionary(pa.int8(), pa.string()))).tolist() == [0, 0]


def with_bytes(slots: list[bytes], valid: int) -> pa.Array:
    offsets = np.cumsum([0, *map(len, slots)], dtype=np.int32)
    return pa.StringArray.from_buffers(
        len(slots), pa.py_buffer(offsets), pa.py_buffer(b"".join(slots)), pa.py_buffer(bytes([valid]))
    )


def test_bytes_under_a_null_do_not_count() -> None:
    assert java_string_hash(with_bytes([b"ab", b"\xff\xfe", "é".encode()], 0b101)).tolist() == [in_java("ab"), 0, in_java("é")]
    assert java_string_hash(with_bytes([b"ab", b"cd", b"ef"], 0b101)).tolist() == [in_java("ab"), 0, in_java("ef")]


def test_bytes_that_are_no_text_are_refused_with_their_row() -> None:
    with pytest.raises(SchemaError, match="text in row 1 is not UTF-8"):
        java_string_hash(with_bytes([b"ab", b"\xff\xfe", b"ef"], 0b111))


def test_a_column_that_is_no_text_is_refused() -> None:
    with pytest.raises(UnsupportedTypeError, match="cannot hash int64 as text"):
        java_string_hash(pa.array([1, 2]))
