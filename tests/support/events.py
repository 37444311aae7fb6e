"""The row that everything is measured with: 12 columns, 136 B in Arrow, and the same row as Hudi stores it (17 columns)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import pc

_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("event_id", pa.string()),
    ("user_id", pa.int64()),
    ("ts", pa.timestamp("us", tz="UTC")),
    ("event_type", pa.string()),
    ("city", pa.string()),
    ("amount", pa.decimal128(18, 4)),
    ("price", pa.float64()),
    ("qty", pa.int32()),
    ("comment", pa.string()),
    ("version", pa.int64()),
    ("is_active", pa.bool_()),
    ("dt", pa.string()),
]
EVENTS_SCHEMA = pa.schema(_COLUMNS)
"""Record key ``event_id``, ordering ``version``, partition (when there is one) ``dt`` with 28 values."""

_TYPES = ("view", "click", "cart", "purchase", "refund")
_CITIES = ("Paris", "Berlin", "Madrid", "Lisbon", "Vienna", "Prague", "Oslo", "Dublin", "Athens", "Warsaw")
_WORDS = ("lorem", "ipsum", "dolor", "amet", "elit", "sed", "tempor", "magna")
_DAYS = tuple(f"2026-02-{day:02d}" for day in range(1, 29))
_EPOCH_US = 1_769_904_000_000_000


def event_ids(numbers: npt.NDArray[np.int64]) -> pa.Array[Any]:
    """Keys of 21 characters, ``evt-`` and 17 digits, that do not sort by number. Distinct for numbers below 10**9."""
    low = numbers * 618_033_989 % 10**9
    high = numbers * 2_654_435_761 % 2**32 % 10**8
    rest = high * 10**9 + low
    text = np.empty((len(numbers), 21), dtype=np.uint8)
    text[:, :4] = np.frombuffer(b"evt-", dtype=np.uint8)
    for place in range(20, 3, -1):
        rest, digit = np.divmod(rest, 10)
        text[:, place] = digit + ord("0")
    offsets = np.arange(0, 21 * (len(numbers) + 1), 21, dtype=np.int32)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets.data), pa.py_buffer(text.data))


def events(n: int, *, start: int = 0, seed: int = 0) -> pa.Table:
    """``n`` rows with the keys number ``start`` to ``start + n``; other values drawn from ``seed``. 1 M rows take a second."""
    rng = np.random.default_rng((seed, start))
    numbers = np.arange(start, start + n)
    columns = [
        event_ids(numbers),
        pa.array(rng.integers(0, 1_000_000, n)),
        pa.array(_EPOCH_US + rng.integers(0, 28 * 86_400 * 10**6, n), pa.timestamp("us", tz="UTC")),
        _pick(rng, _TYPES, n),
        _pick(rng, _CITIES, n),
        _decimals(rng.integers(0, 10**9, n)),
        pa.array(rng.random(n) * 1000),
        pa.array(rng.integers(1, 100, n, dtype=np.int32), mask=rng.random(n) < 0.1),
        _comments(rng, n),
        pa.array(np.full(n, 1, dtype=np.int64)),
        pa.array(rng.random(n) < 0.5),
        _pick(rng, _DAYS, n),
    ]
    return pa.table(columns, schema=EVENTS_SCHEMA)


def with_meta(rows: pa.Table, instant: str, file_id: str) -> pa.Table:
    """The rows as a log block of ``instant`` holds them, not partitioned: five Hudi columns in front."""
    n = rows.num_rows
    constant = {name: pa.repeat(pa.scalar(value), n) for name, value in (("t", instant), ("p", ""), ("f", file_id))}
    seqno = _joined(pa.scalar(f"{instant}_0_"), pc.cast(pa.array(np.arange(1, n + 1)), pa.string()), separator="")
    meta = {
        "_hoodie_commit_time": constant["t"],
        "_hoodie_commit_seqno": seqno,
        "_hoodie_record_key": rows["event_id"],
        "_hoodie_partition_path": constant["p"],
        "_hoodie_file_name": constant["f"],
    }
    return pa.table({**meta, **dict(zip(rows.column_names, rows.columns, strict=True))})


def _pick(rng: np.random.Generator, values: tuple[str, ...], n: int) -> pa.Array[Any]:
    chosen: Any = pa.array(rng.integers(0, len(values), n))
    return pa.array(values).take(chosen)


def _decimals(unscaled: npt.NDArray[np.int64]) -> pa.Array[Any]:
    """decimal(18, 4) from non-negative unscaled values."""
    words = np.zeros((len(unscaled), 2), dtype=np.int64)
    words[:, 0] = unscaled
    return pa.Array.from_buffers(pa.decimal128(18, 4), len(unscaled), [None, pa.py_buffer(words.data)])


def _comments(rng: np.random.Generator, n: int) -> pa.Array[Any]:
    """About 22 bytes of words and a number, a fifth null."""
    number = pc.cast(pa.array(rng.integers(0, 10**6, n)), pa.string())
    text = _joined(_pick(rng, _WORDS, n), _pick(rng, _WORDS, n), "note", number, separator=" ")
    nulls: pa.Array[Any] = pc.if_else(pa.array(rng.random(n) < 0.2), pa.scalar(None, pa.string()), text)
    return nulls


def _joined(*parts: Any, separator: str) -> pa.Array[Any]:
    joined: pa.Array[Any] = pc.binary_join_element_wise(*parts, separator)
    return joined
