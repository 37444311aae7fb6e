"""Rows of a DataFrame, or of a stream, go into a table without a cluster (PySpark 4): tasks hand them to the driver, which writes
and commits them. Nothing is written before, so a task that fails, comes twice or late leaves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from headgate_spark.batches import channels_of
from headgate_spark.carried import carrying
from headgate_spark.sink_options import DirectOptions
from headgate_spark.task_messages import TaskMessage, query_of, query_of_task
from headgate_tables.errors import OptionError
from headgate_tables.face.log import Channels
from headgate_tables.face.owner import Table
from headgate_tables.opening import open_table

MOST_BYTES: Final = 128 << 20
"""Of all rows, in Arrow's stream format. They pass through the driver, whose Java has 1 GiB by default."""


@dataclass(frozen=True, slots=True)
class TaskRows(TaskMessage):
    """The rows of a task: ``stream`` in Arrow's stream format, empty for none."""

    stream: bytes


class DirectWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """For ``df.write``: one commit of all rows."""

    def __init__(self, options: DirectOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskRows:
        """The rows of one task."""
        with carrying():
            return TaskRows(_stream_of(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All tasks have ended well."""
        with carrying(), _open(self._options) as table:
            _commit(table, self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing is there to be undone."""


class DirectStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """For ``df.writeStream``: a commit for each batch, which stores the query and the batch's number with the rows. A batch at or
    below the stored number does nothing. A query that begins anew, without its checkpoint, is another query.
    """

    def __init__(self, options: DirectOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskRows:
        """The rows of one task of a batch."""
        with carrying():
            return TaskRows(_stream_of(iterator), query=query_of_task())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """All tasks of the batch have ended well."""
        if not (query := query_of(messages)):
            return
        with carrying(), _open(self._options) as table:
            if (channels := channels_of(table, query, batchId)) is not None:
                _commit(table, self._options, messages, channels)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing is there to be undone."""


def _open(options: DirectOptions) -> Table:
    return open_table(options.url, storage_options=options.storage)


def _stream_of(batches: Iterator[pa.RecordBatch]) -> bytes:
    sink, writer = pa.BufferOutputStream(), None
    for batch in batches:
        if batch.num_rows:
            writer = writer or pa.ipc.new_stream(sink, batch.schema)
            writer.write_batch(batch)
            _check_size(sink.tell())
    if writer is None:
        return b""
    writer.close()
    return bytes(sink.getvalue())


def _check_size(size: int) -> None:
    if size > MOST_BYTES:
        raise OptionError(
            f"the rows have more than {MOST_BYTES >> 20} MiB, and pass through the driver",
            fix="Use headgate_spark.upsert or bulk_insert, whose tasks write files themselves, or smaller batches of a stream.",
        )


def _commit(
    table: Table, options: DirectOptions, messages: Sequence[WriterCommitMessage | None], channels: Channels | None = None
) -> None:
    """Owns the table only when there is something to commit."""
    streams = [each.stream for each in messages if isinstance(each, TaskRows) and each.stream]
    _check_size(sum(map(len, streams)))
    if not streams and channels is None:
        return
    with table.transaction() as transaction:
        if streams:
            rows = pa.concat_tables(pa.ipc.open_stream(each).read_all() for each in streams)
            write = transaction.delete if options.operation == "delete" else transaction.upsert
            write(rows)
        transaction.commit(channels=channels)
