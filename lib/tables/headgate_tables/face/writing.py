"""Where a writer's bucket side puts the rows of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import pyarrow as pa

from headgate_tables.arrow import Array, ChunkedArray
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.settings import BlockFormat

Column: TypeAlias = "Array | ChunkedArray"
LoadMode: TypeAlias = Literal["into_empty", "insert_overwrite", "insert_overwrite_table", "delete_partition"]
"""What a bulk load does to the rows that are there: it wants none; replaces those of the partitions that it writes to; replaces
all; or removes those of named partitions, and writes nothing.
"""
ReadBy: TypeAlias = Literal["auto", "arrow", "spark"]
"""Who reads the Parquet files that Spark loads: Arrow, Spark, or Arrow where it gives the same rows and reaches the files."""


@dataclass(frozen=True, slots=True)
class Changes:
    """n upserts and deletes of one bucket, in the order of their arrival.

    ``rows``: the table's columns, null where a delete needs no value; ``keys``: string[n]; ``deletes``: bool[n]. All may be in
    chunks.
    """

    partition: str
    bucket: int
    rows: pa.Table
    keys: Column
    deletes: Column


@dataclass(frozen=True, slots=True)
class LoadTask:
    """One task of a load. ``process``: a random id of the whole load, so that a file has one name whichever task writes it (rule
    FI3). ``number``: keeps the sequence numbers of the task's rows apart from those of others.
    """

    instant: str
    epoch: int
    process: str
    number: int


class BulkFiles(Protocol):
    """Writes the files of one task of a load."""

    def write(self, rows: pa.Table, written: Callable[[int], None] = ...) -> tuple[list[WriteStatus], int]:
        """One durable file for each bucket of ``rows``, sorted by key, with one row of each key; and how many rows were beaten.

        ``rows``: all rows of these buckets, with exactly the table's columns. ``written`` gets the rows of each finished file.
        Where another run of the task has made a file, that one is reported. Raises TablesError.
        """


class ChangeSink(Protocol):
    """Writes data files for one process of one epoch. One call at a time, never on an event loop."""

    def write(
        self,
        instant: str,
        changes: Sequence[Changes],
        log_versions: Sequence[int],
        *,
        block_format: BlockFormat,
        ordinal: int | None = None,
        threads: int = 1,
        progress: Callable[[], object] = lambda: None,
    ) -> list[WriteStatus]:
        """Writes one file per ``Changes``, durable when this returns, and returns their statuses. No ``Changes`` may be empty.

        Every row is written, each key's in the order of arrival. ``instant`` has been announced (rule P3). ``log_versions``: per
        ``Changes``, counting from 1 in the instant and bucket. ``block_format``: of the rows. ``ordinal``: this process's number
        in the instant's checkpoint. ``threads``: for encoding. ``progress`` is called with each encoded file.

        Raises RetryLater, OperatorNeeded, SyncFailedError; the instant must not be committed then (rule W1).
        """
