"""Splits and merges record batches into messages of a good size, within a message's limits."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import pyarrow as pa

from headgate.entries import EncodedRows
from headgate.errors import InvalidArgumentError, TooLargeError
from headgate.limits import BATCH_ROWS
from headgate_proto.parts import PART_BYTES

Compression = Literal["lz4"] | None

MESSAGE_TARGET_BYTES = PART_BYTES - 64 * 1024
"""Arrow bytes of one message, so that it goes with its schema and envelope as one part: cut in two it costs 3 % more CPU at
both ends together. Smaller: more messages; larger ones would also delay acknowledgements and small calls."""
SMALL_BYTES = 64 * 1024
"""Smaller messages may be merged while they wait, and are not compressed before that."""
MESSAGE_BYTES = 8 * 1024 * 1024 - 512 * 1024
"""The protocol's 8 MiB a message, less the schema (at most 256 KiB) and the envelope."""
BATCH_BYTES = 64 * 1024 * 1024
_FEW_ROWS = 64
"""So few rows are encoded at once: measuring a slice's bytes takes ten times as long."""
_concat_batches: Callable[[Sequence[pa.RecordBatch]], pa.RecordBatch] = pa.concat_batches  # type: ignore[attr-defined]


class Encoder:
    """Encodes record batches. ``compression="lz4"`` costs about 0.7 ms of CPU a MB and saves 40 % on the wire."""

    def __init__(self, compression: Compression = None) -> None:
        if compression not in (None, "lz4"):
            raise InvalidArgumentError(f"compression {compression!r} is not known", fix="Use 'lz4' or None.")
        self._compressed = pa.ipc.IpcWriteOptions(compression=compression) if compression else None

    def encode(self, batches: Iterable[pa.RecordBatch], most_rows: int = BATCH_ROWS) -> Iterator[EncodedRows]:
        """Yields the rows in messages of about the target size and at most ``most_rows``, none without rows. Raises TooLargeError
        for a row above the limit.
        """
        for batch in batches:
            if 0 < batch.num_rows <= min(_FEW_ROWS, most_rows):
                yield from self._split_to_fit(batch)
            elif batch.num_rows:
                step = max(1, min(batch.num_rows * MESSAGE_TARGET_BYTES // max(batch.nbytes, 1), BATCH_ROWS // 2, most_rows))
                for start in range(0, batch.num_rows, step):
                    yield from self._split_to_fit(batch.slice(start, step))

    def encode_as_one(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, most_rows: int = BATCH_ROWS) -> EncodedRows:
        """Encodes all rows as one message, for a batch with an offset of its own. Raises TooLargeError."""
        parts = list(batches)
        batch = _concat_batches(parts) if parts else pa.RecordBatch.from_pylist([], schema=schema)
        encoded = self._encode(batch)
        if not _fits(encoded) or encoded.rows > most_rows:
            raise TooLargeError(
                f"{batch.num_rows} rows of {batch.nbytes} bytes do not fit into one message",
                fix="Rows with an offset of their own travel together: make calls of fewer rows, each with its offset.",
            )
        return encoded

    def merge(self, contents: Sequence[bytes], schema: pa.Schema) -> bytes:
        """Merges several record batch messages into one."""
        if len(contents) == 1:
            return contents[0]
        return self._encode(_concat_batches([decoded(content, schema) for content in contents])).content

    def _split_to_fit(self, batch: pa.RecordBatch) -> Iterator[EncodedRows]:
        """Halves the batch until each part fits: rows may differ much in size."""
        encoded = self._encode(batch)
        if _fits(encoded):
            yield encoded
        elif batch.num_rows == 1:
            raise TooLargeError(f"a row of {batch.nbytes} bytes does not fit into a message", fix="A row may have about 7 MB.")
        else:
            half = batch.num_rows // 2
            yield from self._split_to_fit(batch.slice(0, half))
            yield from self._split_to_fit(batch.slice(half))

    def _encode(self, batch: pa.RecordBatch) -> EncodedRows:
        plain = batch.serialize()
        size = plain.size
        if self._compressed is not None and size >= SMALL_BYTES:
            compressed = _compressed(batch, self._compressed)
            # A server refuses more than a hundredfold as a decompression bomb.
            if size <= compressed.size * 100:
                plain = compressed
        return EncodedRows(batch.num_rows, size, plain.to_pybytes(), size < SMALL_BYTES)


def decoded(content: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a record batch message."""
    return pa.ipc.read_record_batch(pa.py_buffer(content), schema)


def _compressed(batch: pa.RecordBatch, options: pa.ipc.IpcWriteOptions) -> pa.Buffer:
    """The second message of a stream, after its schema: Arrow compresses streams only."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    messages = pa.ipc.MessageReader.open_stream(sink.getvalue())
    messages.read_next_message()
    return messages.read_next_message().serialize()


def _fits(encoded: EncodedRows) -> bool:
    return len(encoded.content) <= MESSAGE_BYTES and encoded.size <= BATCH_BYTES and encoded.rows <= BATCH_ROWS
