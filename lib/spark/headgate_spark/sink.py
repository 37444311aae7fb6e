"""Rows of a DataFrame, or of a stream, go through a cluster: each task has a channel of its own (PySpark 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

import headgate
from headgate_spark.carried import carrying
from headgate_spark.sink_options import SinkOptions
from headgate_spark.task_messages import TaskMessage, query_of, query_of_task

_BATCH: Final = "streaming.sql.batchId"
"""The local property by which Spark tells a task its batch."""


@dataclass(frozen=True, slots=True)
class Sent(TaskMessage):
    """What a task has sent. A twin of it sent the same."""

    rows: int


class ClusterWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """For ``df.write``. Every task waits until its rows are committed; there is no commit of all tasks together."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """The rows of one task."""
        with carrying(), self._options.connect() as cluster:
            return _send(self._options, cluster.table(self._options.table), iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing is left to do."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """What tasks have sent stays: the job that runs again sends it again, under the same keys."""


class ClusterStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """For ``df.writeStream``. The offset of the channel ``NAME:batches:QUERY`` is how many batches are committed with all their
    rows. One of these that Spark sends again is left out; one that broke off is sent again, under the same keys. A query that
    begins anew, without its checkpoint, is another query.
    """

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """The rows of one task of a batch."""
        number, query = TaskContext.get().getLocalProperty(_BATCH), query_of_task()
        with carrying(), self._options.connect() as cluster:
            table = cluster.table(self._options.table)
            if int(number) < _batches_done(table, self._options, query):
                return Sent(0, query=query)
            return Sent(_send(self._options, table, iterator).rows, query=query)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """All tasks of the batch have ended well."""
        options = self._options
        if not (query := query_of(messages)):
            return
        with carrying(), options.connect() as cluster, cluster.table(options.table).channel(_batches(options, query)) as channel:
            if channel.committed_offset <= batchId:
                channel.skip(batchId + 1)
                channel.flush("durable", timeout=options.timeout)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What tasks have sent stays: Spark sends the batch again."""


def _batches(options: SinkOptions, query: str) -> str:
    return f"{options.channel}:batches:{query}"


def _batches_done(table: headgate.Table, options: SinkOptions, query: str) -> int:
    """How many of the query's batches are committed, counted from its first one."""
    name = _batches(options, query)
    return next((each.committed_offset for each in table.channels(name) if each.name == name), 0)


def _send(options: SinkOptions, table: headgate.Table, batches: Iterator[pa.RecordBatch]) -> Sent:
    rows = 0
    with table.channel(f"{options.channel}:{TaskContext.get().partitionId()}") as channel:
        send = channel.delete if options.operation == "delete" else channel.upsert
        for batch in batches:
            if batch.num_rows:
                send(batch, timeout=options.timeout)
                rows += batch.num_rows
        channel.flush(options.level, timeout=options.timeout)
    return Sent(rows)
