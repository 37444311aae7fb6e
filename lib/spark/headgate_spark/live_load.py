"""Live load: a DataFrame's rows go as log files into a table that is in use, in one commit; so do its deletes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from pyspark.sql import DataFrame

from headgate_spark.loading import run_load
from headgate_spark.progress import Written
from headgate_tables.errors import OptionError
from headgate_tables.face.log import ChannelRecord, Channels
from headgate_tables.face.owner import Table
from headgate_tables.face.results import CommitResult
from headgate_tables.opening import open_table
from headgate_tables.system import System

_NOTHING: Final = CommitResult("", "", 0, 0, 0, 0, 0)
"""What a batch has done that is in the table already."""
_PREFIX: Final = "spark:"
_LONGEST: Final = 200


def upsert(
    df: DataFrame,
    table: str | Table,
    *,
    tasks: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: Callable[[Written], object] | None = None,
    batch: tuple[str, int] | None = None,
) -> CommitResult:
    """Inserts all rows of ``df``, which has the table's columns, or replaces those of their keys, in one commit; durable and
    visible when this returns.

    Of rows of one key the one with the largest ordering value stays, also beside what the table has; of equal ones, and
    without an ordering column, one of ``df``, any. ``batch``: the name of a query and the number of one of its batches, as
    ``foreachBatch`` gives it. The commit stores both, and a batch at or below the stored number does nothing: each batch is
    in the table once, whatever was started again. All else is as of ``bulk_insert``. Raises TablesError.
    """
    return _write(df, table, "upsert", tasks, storage_options, progress, batch)


def delete(
    df: DataFrame,
    table: str | Table,
    *,
    tasks: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: Callable[[Written], object] | None = None,
    batch: tuple[str, int] | None = None,
) -> CommitResult:
    """Deletes the rows of the keys in ``df``, which has the record key, partition and ordering columns, in one commit; others of
    its columns are ignored. A row with a larger ordering value stays. The arguments: as ``upsert``. Raises TablesError.
    """
    return _write(df, table, "delete", tasks, storage_options, progress, batch)


def _write(
    df: DataFrame,
    table: str | Table,
    load: Literal["upsert", "delete"],
    tasks: int | None,
    storage_options: Mapping[str, str] | None,
    progress: Callable[[Written], object] | None,
    batch: tuple[str, int] | None,
) -> CommitResult:
    if isinstance(table, str):
        with open_table(table, storage_options=storage_options) as opened:
            return _write(df, opened, load, tasks, storage_options, progress, batch)
    channels: Channels | None = None
    if batch is not None:
        name, number = _channel_of(batch)
        table.own()  # the record of an earlier owner may be newer than the one that this handle has read
        if (stored := table.channels.get(name)) is not None and number < stored.offset:
            return _NOTHING
        channels = {name: ChannelRecord(0, number + 1, "", System.real().clock.now_ms())}
    return run_load(df, table, load, tasks=tasks, storage_options=storage_options, progress=progress, channels=channels)


def _channel_of(batch: tuple[str, int]) -> tuple[str, int]:
    """The channel that stands for the query, and the batch's number, which counts from 0."""
    query, number = batch
    if not 0 < len(query) <= _LONGEST or not query.isprintable():
        raise OptionError(f"batch={batch!r}: no name of a query", fix=f"Give a name of 1 to {_LONGEST} printable characters.")
    if number < 0:
        raise OptionError(f"batch={batch!r}: no number of a batch", fix="Give the number that foreachBatch gives.")
    return _PREFIX + query, number
