"""Splits and merges record batches into messages of a good size, within a message's limits."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import pyarrow as pa

from headgate.entries import Content, EncodedRows, Piece
from headgate.errors import InvalidArgumentError, TooLargeError
from headgate.partitions import cut_at_partitions
from headgate.rows import RowFormat
from headgate_proto.limits import BATCH_BYTES, BATCH_PARTITIONS, BATCH_ROWS, BATCH_WIRE_BYTES, COMPRESSION_RATIO
from headgate_proto.serialized import PART_BYTES

Compression = Literal["lz4"] | None

MESSAGE_TARGET_BYTES = PART_BYTES - 64 * 1024
"""Arrow bytes of one message, so that it goes with its schema and envelope as one part: cut in two it costs 3 % more CPU at
both ends together. Smaller: more messages; larger ones would also delay acknowledgements and small calls."""
SMALL_BYTES = 64 * 1024
"""Smaller messages may be merged while they wait, and are not compressed before that."""
MESSAGE_BYTES = BATCH_WIRE_BYTES - 512 * 1024
"""What a writer takes, less the schema (at most 256 KiB) and the envelope."""
_FEW_ROWS = 256
"""So few rows are encoded at once, and count as so many partitions: to measure a slice's bytes and to count its partitions takes
ten times as long."""
_MEMORY = pa.system_memory_pool()
"""For messages, which wait until their rows are queryable. Arrow's own allocator gives free memory back to the system, which
clears it again for the next ones: three times the CPU that page faults cost with the C library's."""


def _concat_columns(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    columns = [pa.concat_arrays(each) for each in zip(*(batch.columns for batch in batches), strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)


concat_batches: Callable[[Sequence[pa.RecordBatch]], pa.RecordBatch] = getattr(pa, "concat_batches", _concat_columns)
"""The rows of several batches of one schema as one batch, copied. Arrow's own came with 19."""


class Encoder:
    """Encodes record batches. ``compression="lz4"`` costs about 0.7 ms of CPU a MB and saves 40 % on the wire."""

    def __init__(self, compression: Compression = None) -> None:
        if compression not in (None, "lz4"):
            raise InvalidArgumentError(f"compression {compression!r} is not known", fix="Use 'lz4' or None.")
        self._compressed = pa.ipc.IpcWriteOptions(compression=compression) if compression else None

    def encode(
        self, batches: Iterable[pa.RecordBatch], most_rows: int = BATCH_ROWS, partition_by: Sequence[str] = ()
    ) -> Iterator[EncodedRows]:
        """Yields the rows in messages of about the target size, none without rows, each with at most ``most_rows`` and as many
        partitions as a writer takes. Raises TooLargeError for a row above the limit.
        """
        for batch in batches:
            if 0 < batch.num_rows <= min(_FEW_ROWS, most_rows):
                encoded = self._encode(batch, batch.num_rows if partition_by else 0)
                if encoded.size <= MESSAGE_TARGET_BYTES:
                    yield encoded
                    continue
            for part, partitions in cut_at_partitions(batch, partition_by, BATCH_PARTITIONS):
                step = max(1, min(part.num_rows * MESSAGE_TARGET_BYTES // max(part.nbytes, 1), BATCH_ROWS // 2, most_rows))
                for start in range(0, part.num_rows, step):
                    yield from self._split_to_fit(part.slice(start, step), partitions)

    def encode_as_one(
        self,
        batches: Iterable[pa.RecordBatch],
        schema: pa.Schema,
        most_rows: int = BATCH_ROWS,
        partition_by: Sequence[str] = (),
    ) -> EncodedRows:
        """Encodes all rows as one message, for a batch with an offset of its own. Raises TooLargeError."""
        given = list(batches)
        batch = concat_batches(given) if given else pa.RecordBatch.from_pylist([], schema=schema)
        parts = [partitions for _, partitions in cut_at_partitions(batch, partition_by, BATCH_PARTITIONS)]
        encoded = self._encode(batch, sum(parts))
        if not _fits(encoded) or encoded.rows > most_rows or len(parts) > 1:
            many = f" and more than {BATCH_PARTITIONS:,} partitions" if len(parts) > 1 else ""
            raise TooLargeError(
                f"{batch.num_rows} rows of {batch.nbytes} bytes{many} do not fit into one message",
                fix="Rows with an offset of their own travel together: make calls of fewer rows, each with its offset.",
            )
        return encoded

    def merge(self, contents: Sequence[Content], schema: pa.Schema) -> Content:
        """Merges several record batch messages into one."""
        if len(contents) == 1:
            return contents[0]
        return self._encode(concat_batches([decoded(content, schema) for content in contents]), 0).content

    def _split_to_fit(self, batch: pa.RecordBatch, partitions: int) -> Iterator[EncodedRows]:
        """Halves the batch until each part fits: rows may differ much in size."""
        encoded = self._encode(batch, partitions)
        if _fits(encoded):
            yield encoded
        elif batch.num_rows == 1:
            raise TooLargeError(f"a row of {batch.nbytes} bytes does not fit into a message", fix="Send smaller rows.")
        else:
            half = batch.num_rows // 2
            yield from self._split_to_fit(batch.slice(0, half), partitions)
            yield from self._split_to_fit(batch.slice(half), partitions)

    def _encode(self, batch: pa.RecordBatch, partitions: int) -> EncodedRows:
        plain = batch.serialize(memory_pool=_MEMORY)
        size = plain.size
        if self._compressed is not None and size >= SMALL_BYTES:
            compressed = _compressed(batch, self._compressed)
            # A server refuses more as a decompression bomb.
            if size <= compressed.size * COMPRESSION_RATIO:
                plain = compressed
        small = size < SMALL_BYTES
        return EncodedRows(batch.num_rows, size, plain.to_pybytes() if small else plain, small, partitions)


def encode_call(encoder: Encoder, row_format: RowFormat, rows: object, offset: int | None) -> Iterable[EncodedRows]:
    """Yields a call's rows as messages: one if the call gives an offset, otherwise several of a good size. Raises FixCall."""
    batches = row_format.convert(rows)
    if offset is None:
        return encoder.encode(batches, row_format.most_rows, row_format.partition_by)
    return [encoder.encode_as_one(batches, row_format.schema, row_format.most_rows, row_format.partition_by)]


def decoded(content: Content, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a record batch message."""
    return pa.ipc.read_record_batch(pa.py_buffer(content), schema)


def halved(row_format: RowFormat, piece: Piece) -> tuple[Piece, Piece]:
    """Two pieces with half of a piece's calls each, which together count as many bytes."""
    batch, middle = decoded(piece.content, row_format.schema), len(piece.calls) // 2
    before, behind = batch.slice(0, middle).serialize().to_pybytes(), batch.slice(middle).serialize().to_pybytes()
    size = piece.size // 2
    return (
        Piece(piece.calls[middle - 1], size, before, piece.calls[:middle]),
        Piece(piece.offset, piece.size - size, behind, piece.calls[middle:]),
    )


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
