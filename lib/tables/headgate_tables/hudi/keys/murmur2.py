"""MurmurHash2 as Hadoop computes it, over whole columns of keys (Hudi: common.bloom.Hash, MurmurHash)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headgate_tables.arrow import Array, buffer_bytes, offsets_of

Hashes = npt.NDArray[np.uint32]
_MULTIPLIER = np.uint32(0x5BD1E995)
_WORD = 4


class HashedKeys:
    """Keys prepared for hashing with several seeds: what does not depend on the seed is done once.

    Rows are ordered by length, longest first: a word of the hash is then the same operation on the first rows.
    """

    def __init__(self, keys: Array) -> None:
        """``keys``: string[n] without nulls."""
        data, starts, lengths = _bytes(keys)
        self._order = None if _equal(lengths) else np.argsort(-lengths, kind="stable")
        if self._order is not None:
            starts, lengths = starts[self._order], lengths[self._order]
        self._lengths = lengths.astype(np.uint32)
        self._words = [_mixed(_word_at(data, starts[:n] + _WORD * w)) for w, n in enumerate(_reaching(lengths))]
        self._tails, self._factors = _tails(data, starts, lengths)

    def __len__(self) -> int:
        return len(self._lengths)

    def hash(self, seeds: Hashes | np.uint32) -> Hashes:
        """uint32[n] in the internal order; ``seeds``: one, or the result of the last call. See ``rows``."""
        found = self._lengths ^ seeds
        for words in self._words:
            part = found[: len(words)]
            part *= _MULTIPLIER
            part ^= words
        found ^= self._tails
        found *= self._factors
        found ^= found >> np.uint32(13)
        found *= _MULTIPLIER
        found ^= found >> np.uint32(15)
        return found

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """The row of the key at each place of a ``hash`` result."""
        return np.arange(len(self._lengths)) if self._order is None else self._order


def _bytes(keys: Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The text, where each key begins in it, and its length. Seven bytes surround the text on each side."""
    if not len(keys):
        return np.zeros(2 * _PAD, dtype=np.uint8), _NONE, _NONE
    ends = offsets_of(keys).astype(np.int64)
    first, last = int(ends[0]), int(ends[-1])
    data = np.zeros(last - first + 2 * _PAD, dtype=np.uint8)
    if last > first:
        data[_PAD:-_PAD] = np.frombuffer(buffer_bytes(keys, 2), dtype=np.uint8)[first:last]
    return data, ends[:-1] - first + _PAD, np.diff(ends)


_PAD = 7
_NONE = np.zeros(0, dtype=np.int64)


def _equal(lengths: npt.NDArray[np.int64]) -> bool:
    return len(lengths) == 0 or bool((lengths == lengths[0]).all())


def _reaching(lengths: npt.NDArray[np.int64]) -> list[int]:
    """For each word of the longest key, the number of keys that have it (longest first)."""
    if not len(lengths):
        return []
    words = lengths[::-1] // _WORD
    return [len(words) - int(np.searchsorted(words, w, side="right")) for w in range(int(words[-1]))]


def _word_at(data: npt.NDArray[np.uint8], at: npt.NDArray[np.int64]) -> Hashes:
    overlapping: Hashes = np.ndarray((len(data) - _WORD + 1,), dtype="<u4", buffer=data, strides=(1,))
    return overlapping[at]


def _mixed(words: Hashes) -> Hashes:
    words *= _MULTIPLIER
    words ^= words >> np.uint32(24)
    words *= _MULTIPLIER
    return words


def _tails(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> tuple[Hashes, Hashes]:
    """How the 1 to 3 bytes after the last word change the hash: first xor, then multiply. Bytes are signed, as in Java."""
    left = lengths % _WORD
    ends = starts + lengths
    signed = data.view(np.int8)
    tails = np.zeros(len(lengths), dtype=np.int32)
    for back, shift in ((3, 16), (2, 8), (1, 0)):
        tails ^= np.where(left >= back, signed[ends - back].astype(np.int32) << np.int32(shift), np.int32(0))
    return tails.view(np.uint32), np.where(left > 0, _MULTIPLIER, np.uint32(1))
