"""Record batches become messages of a good size: large ones are cut, small ones put together, all within a message's limits."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import pyarrow as pa

from headgate.entries import Cut
from headgate.errors import InvalidArgumentError, TooLargeError

Compression = Literal["lz4"] | None

PIECE_BYTES = 1_500_000
"""Arrow bytes of a cut. gRPC is fastest from 1 to 4 MiB; larger ones would hold up acknowledgements and small calls."""
SMALL_BYTES = 64 * 1024
"""Messages below it may be put together while they wait, and are not compressed before."""
MESSAGE_BYTES = 8 * 1024 * 1024 - 512 * 1024
"""The protocol's 8 MiB for a message, less the schema (at most 256 KiB) and the envelope."""
BATCH_BYTES = 64 * 1024 * 1024
BATCH_ROWS = 1_000_000
_FEW_ROWS = 64
"""So few are encoded straight away: to ask how many bytes a slice uses takes ten times as long."""
_concat_batches: Callable[[Sequence[pa.RecordBatch]], pa.RecordBatch] = pa.concat_batches  # type: ignore[attr-defined]


class Encoder:
    """``compression="lz4"`` costs about 0.7 ms of CPU a MB and saves 40 % on the wire."""

    def __init__(self, compression: Compression = None) -> None:
        if compression not in (None, "lz4"):
            raise InvalidArgumentError(f"compression {compression!r} is not known", fix="Use 'lz4' or None.")
        self._compressed = pa.ipc.IpcWriteOptions(compression=compression) if compression else None

    def cuts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Cut]:
        """The rows in messages of about PIECE_BYTES; nothing for no rows. Raises TooLargeError for a row that fits into none."""
        for batch in batches:
            if 0 < batch.num_rows <= _FEW_ROWS:
                yield from self._fitting(batch)
            elif batch.num_rows:
                step = max(1, min(batch.num_rows * PIECE_BYTES // max(batch.nbytes, 1), BATCH_ROWS // 2))
                for start in range(0, batch.num_rows, step):
                    yield from self._fitting(batch.slice(start, step))

    def whole(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Cut:
        """All rows in one message, for a batch with an offset of its own. Raises TooLargeError."""
        parts = list(batches)
        batch = _concat_batches(parts) if parts else pa.RecordBatch.from_pylist([], schema=schema)
        cut = self._cut(batch)
        if not _fits(cut):
            raise TooLargeError(
                f"{batch.num_rows} rows of {batch.nbytes} bytes do not fit into one message",
                fix="Rows with an offset of their own travel together: make calls of fewer rows, each with its offset.",
            )
        return cut

    def merge(self, contents: Sequence[bytes], schema: pa.Schema) -> bytes:
        """One record batch message of several."""
        if len(contents) == 1:
            return contents[0]
        return self._cut(_concat_batches([decoded(content, schema) for content in contents])).content

    def _fitting(self, batch: pa.RecordBatch) -> Iterator[Cut]:
        """Halves until it fits: rows of very different sizes make cuts of very different sizes."""
        cut = self._cut(batch)
        if _fits(cut):
            yield cut
        elif batch.num_rows == 1:
            raise TooLargeError(f"a row of {batch.nbytes} bytes does not fit into a message", fix="A row may have about 7 MB.")
        else:
            half = batch.num_rows // 2
            yield from self._fitting(batch.slice(0, half))
            yield from self._fitting(batch.slice(half))

    def _cut(self, batch: pa.RecordBatch) -> Cut:
        plain = batch.serialize()
        size = plain.size
        if self._compressed is not None and size >= SMALL_BYTES:
            compressed = _compressed(batch, self._compressed)
            # A server takes more than a hundredfold for a bomb.
            if size <= compressed.size * 100:
                plain = compressed
        return Cut(batch.num_rows, size, plain.to_pybytes(), size < SMALL_BYTES)


def decoded(content: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a record batch message."""
    return pa.ipc.read_record_batch(pa.py_buffer(content), schema)


def _compressed(batch: pa.RecordBatch, options: pa.ipc.IpcWriteOptions) -> pa.Buffer:
    """Only streams know compression, so one is written and its second message, behind the schema, taken out."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    messages = pa.ipc.MessageReader.open_stream(sink.getvalue())
    messages.read_next_message()
    return messages.read_next_message().serialize()


def _fits(cut: Cut) -> bool:
    return len(cut.content) <= MESSAGE_BYTES and cut.size <= BATCH_BYTES and cut.rows <= BATCH_ROWS
