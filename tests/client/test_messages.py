"""Messages of a good size, within the limits of the protocol."""

import numpy as np
import pyarrow as pa
import pytest

from headgate.encoding import MESSAGE_BYTES, MESSAGE_TARGET_BYTES, Compression, Encoder, decoded
from headgate.errors import InvalidArgumentError, TooLargeError
from headgate_proto.serialized import PART_BYTES
from support.events import EVENTS_SCHEMA, events

ROWS = events(50_000).combine_chunks().to_batches()[0]


def texts(*sizes: int, letter: str = "x") -> pa.RecordBatch:
    return pa.record_batch({"text": [letter * size for size in sizes]})


def noise(rows: int, width: int) -> pa.RecordBatch:
    content = np.random.default_rng(1).bytes(rows * width)
    return pa.record_batch({"noise": pa.array([content[at * width : (at + 1) * width] for at in range(rows)], pa.binary())})


@pytest.mark.parametrize("compression", [None, "lz4"])
def test_large_batches_are_cut_and_no_row_is_lost(compression: Compression) -> None:
    cuts = list(Encoder(compression).encode([ROWS]))
    assert [decoded(cut.content, EVENTS_SCHEMA) for cut in cuts]
    assert pa.Table.from_batches([decoded(cut.content, EVENTS_SCHEMA) for cut in cuts]).equals(pa.Table.from_batches([ROWS]))
    assert sum(cut.rows for cut in cuts) == 50_000
    assert all(len(cut.content) < PART_BYTES - 10_000 for cut in cuts)  # with schema and envelope it goes as one part
    assert all(cut.size > MESSAGE_TARGET_BYTES / 2 for cut in cuts[:-1])


def test_compression_saves_bytes_on_the_wire_and_counts_memory_uncompressed() -> None:
    plain, small = (next(Encoder(compression).encode([ROWS.slice(0, 5000)])) for compression in (None, "lz4"))
    assert len(small.content) < 0.8 * len(plain.content)
    assert small.size == plain.size


def test_what_a_server_would_take_for_a_bomb_is_not_compressed() -> None:
    (cut,) = Encoder("lz4").encode([texts(1_400_000)])
    assert len(cut.content) > 1_400_000


def test_rows_of_very_different_sizes_all_fit() -> None:
    batch = texts(*[10] * 1000, *[3_000_000] * 5, *[10] * 1000)
    cuts = list(Encoder().encode([batch]))
    assert max(len(cut.content) for cut in cuts) <= MESSAGE_BYTES
    assert pa.Table.from_batches([decoded(cut.content, batch.schema) for cut in cuts]).equals(pa.Table.from_batches([batch]))


def test_a_row_that_fits_into_no_message_is_refused() -> None:
    with pytest.raises(TooLargeError):
        list(Encoder().encode([texts(10, 8_000_000, 10)]))


@pytest.mark.slow
def test_rows_with_an_own_offset_travel_together_or_not_at_all() -> None:
    cut = Encoder().encode_as_one([noise(2, 1_000_000), noise(2, 1_000_000)], noise(1, 1).schema)
    assert cut.rows == 4
    with pytest.raises(TooLargeError, match="fewer rows"):
        Encoder().encode_as_one([noise(8, 1_000_000)], noise(1, 1).schema)
    compressible = pa.record_batch({"text": [f"{number:032x}" + "x" * 1000 for number in range(70_000)]})
    with pytest.raises(TooLargeError):
        Encoder("lz4").encode_as_one([compressible], compressible.schema)
    assert len(Encoder("lz4").encode_as_one([compressible.slice(0, 60_000)], compressible.schema).content) < MESSAGE_BYTES


def test_no_rows_with_an_own_offset_are_an_empty_batch() -> None:
    cut = Encoder().encode_as_one([], EVENTS_SCHEMA)
    assert decoded(cut.content, EVENTS_SCHEMA).num_rows == 0


def test_small_messages_become_one() -> None:
    encoder = Encoder("lz4")
    pieces = [next(encoder.encode([ROWS.slice(at, 1)])) for at in range(500)]
    assert all(piece.mergeable and piece.size < 5_000 for piece in pieces)
    merged = encoder.merge([piece.content for piece in pieces], EVENTS_SCHEMA)
    assert decoded(merged, EVENTS_SCHEMA).equals(ROWS.slice(0, 500))


def test_an_unknown_compression_is_refused() -> None:
    with pytest.raises(InvalidArgumentError):
        Encoder("brotli")  # type: ignore[arg-type]
