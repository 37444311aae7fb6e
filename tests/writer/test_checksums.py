"""What a frame's checksum tells apart."""

import numpy as np
import pytest

from headgate_writer.checksums import frame_checksum

GROUPS = [("p", 1), ("q", 0)]
PINNED = 16519848161189565560
SIZES = [0, 5, 8, 4_096 * 8 - 8, 4_096 * 8, 3 * 4_096 * 8 + 5_000 * 4 + 3]
"""Less than a word, whole words, a block but for a word, a block, and some of everything."""


def some(size: int) -> bytes:
    return np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()


def test_the_checksum_of_a_frame_never_changes() -> None:
    """Writers of two releases exchange frames while a cluster is upgraded."""
    assert frame_checksum(GROUPS, bytes(range(256)) * 1_000) == PINNED


@pytest.mark.parametrize("size", SIZES)
def test_a_bit_that_differs_anywhere_is_seen(size: int) -> None:
    batch = some(size)
    right = frame_checksum(GROUPS, batch)
    assert 0 <= right < 2**64
    for at in {0, 7, 8, size // 2, size - 9, size - 1}:
        if 0 <= at < size:
            for bit in (1, 128):
                other = bytearray(batch)
                other[at] ^= bit
                assert frame_checksum(GROUPS, bytes(other)) != right, at


@pytest.mark.parametrize("size", SIZES[3:])
def test_words_and_blocks_that_change_places_are_seen(size: int) -> None:
    batch = some(size)
    right = frame_checksum(GROUPS, batch)
    swapped = {
        "words": batch[8:16] + batch[:8] + batch[16:],
        "halves": batch[size // 16 * 8 :] + batch[: size // 16 * 8],
        "blocks": batch[4_096 * 8 : 4_096 * 16] + batch[: 4_096 * 8] + batch[4_096 * 16 :],
    }
    for other in swapped.values():
        assert other == batch or frame_checksum(GROUPS, other) != right


def test_bytes_that_are_missing_or_added_are_seen_though_they_are_zero() -> None:
    assert len({frame_checksum(GROUPS, bytes(size)) for size in (0, 1, 8, 16, 4_096 * 8, 4_096 * 16)}) == 6


def test_rows_of_other_buckets_are_another_frame() -> None:
    batch = some(100)
    groups = [GROUPS, [("p", 2), ("q", 0)], [("q", 0), ("p", 1)], [("p", 1)], [("p", 1), ("r", 0)]]
    assert len({frame_checksum(each, batch) for each in groups}) == len(groups)
