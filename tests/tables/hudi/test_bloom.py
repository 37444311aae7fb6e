"""Bloom filters: Hudi's own bytes, and what is in them."""

from __future__ import annotations

import base64
import io
import struct
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from headgate_tables.hudi.bloom import FILTER_KEY, TYPE_KEY, DynamicBloomFilter, bits_and_hashes, positions
from headgate_tables.hudi.keys.murmur2 import HashedKeys
from support.golden import names
from support.golden_logs import golden_files
from support.strategies import effort


def base_files() -> Iterator[tuple[str, pa.Buffer]]:
    """Of all golden tables of Spark, those with a filter."""
    for name in names("*"):
        for path, content in golden_files(f"spark/{name}"):
            if path.endswith(".parquet") and not path.startswith(".hoodie"):
                metadata = pq.read_metadata(pa.BufferReader(content)).metadata or {}
                if FILTER_KEY.encode() in metadata:
                    yield f"{name}/{path}", content


def test_golden_base_files_filters_are_made_again_byte_by_byte() -> None:
    """For 200 keys in most of the tables, for Hudi's default of 60,000 in some."""
    seen = dict.fromkeys((200, 60_000), 0)
    for path, content in base_files():
        file = pq.ParquetFile(pa.BufferReader(content))
        footer = file.metadata.metadata
        stored = base64.b64decode(footer[FILTER_KEY.encode()])
        assert footer[TYPE_KEY.encode()] == b"DYNAMIC_V0", path
        (entries,) = struct.unpack_from(">i", stored, 13)
        made = DynamicBloomFilter(entries, 1e-9)
        made.add(file.read(["_hoodie_record_key"])["_hoodie_record_key"].combine_chunks())
        assert made.to_bytes() == stored, path
        assert made.footer()[FILTER_KEY].encode() == footer[FILTER_KEY.encode()]
        seen[entries] += 1
    assert seen[200] > 100
    assert seen[60_000] > 0


def test_hudis_default_size_and_the_first_positions_of_a_key() -> None:
    """Figures of Hudi's own filter."""
    assert bits_and_hashes(60_000, 1e-9) == (2_587_966, 30)
    found, _ = positions(pa.array(["abc"]), 2_587_966, 30)
    assert found[:5, 0].tolist() == [144227, 2031112, 412226, 897289, 1992954]


def murmur2(key: bytes, seed: int) -> int:
    """Hadoop's, one byte after the other."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = seed ^ len(key)
    for at in range(0, len(key) // 4 * 4, 4):
        k = int.from_bytes(key[at : at + 4], "little") * m & mask
        h = (h * m & mask) ^ ((k ^ k >> 24) * m & mask)
    left = len(key) % 4
    if left:
        for back, shift in ((3, 16), (2, 8), (1, 0)):
            if left >= back:
                h ^= (struct.unpack("b", key[-back : len(key) - back + 1])[0] << shift) & mask
        h = h * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


@effort(150)
@given(keys=st.lists(st.text(min_size=1, max_size=20), max_size=10), seed=st.integers(0, 2**32 - 1), skipped=st.integers(0, 2))
def test_the_hash_is_hadoops(keys: list[str], seed: int, skipped: int) -> None:
    array = pa.array(["x" * skipped, *keys], pa.string()).slice(1)
    hashed = HashedKeys(array)
    assert hashed.hash(np.uint32(seed)).tolist() == [murmur2(keys[row].encode(), seed) for row in hashed.rows]


class Plain:
    """Hudi's dynamic filter, one key at a time (InternalDynamicBloomFilter)."""

    def __init__(self, entries: int, fpp: float, most: int) -> None:
        self.entries, self.most = entries, most
        self.bits, self.hashes = bits_and_hashes(entries, fpp)
        self.rows: list[set[int]] = [set()]
        self.current = self.turn = 0
        self.full = False

    def add(self, key: str) -> None:
        row = self._row()
        value = 0
        for _ in range(self.hashes):
            value = murmur2(key.encode(), value)
            signed = value - (1 << 32) if value >= 1 << 31 else value
            row.add(abs(signed) % self.bits)
        self.current += 1

    def _row(self) -> set[int]:
        if self.full:
            self.turn += 1
            return self.rows[(self.turn - 1) % len(self.rows)]
        if self.current >= self.entries and len(self.rows) * self.entries < self.most:
            self.rows.append(set())
            self.current = 0
        elif self.current >= self.entries:
            self.full = True
            return self.rows[0]
        return self.rows[-1]

    def to_bytes(self) -> bytes:
        head = struct.pack(">iibi", -1, self.hashes, 1, self.bits)
        out = io.BytesIO(head + struct.pack(">iii", self.entries, self.current, len(self.rows)))
        out.seek(0, io.SEEK_END)
        for row in self.rows:
            bits = np.zeros(self.bits, dtype=bool)
            bits[list(row)] = True
            out.write(head + np.packbits(bits, bitorder="little").tobytes())
        return out.getvalue()


@effort(60)
@given(
    keys=st.lists(st.text(min_size=1, max_size=9), max_size=40),
    entries=st.integers(1, 7),
    most=st.integers(1, 20),
    parts=st.integers(1, 9),
)
def test_a_filter_grows_and_then_wraps_around_as_hudis_does(keys: list[str], entries: int, most: int, parts: int) -> None:
    made, plain = DynamicBloomFilter(entries, 0.01, most), Plain(entries, 0.01, most)
    for at in range(0, len(keys), parts):
        made.add(pa.array(keys[at : at + parts], pa.string()))
    for key in keys:
        plain.add(key)
    assert made.to_bytes() == plain.to_bytes()
