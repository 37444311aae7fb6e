"""Live load: a DataFrame's rows go as log files into a table that is in use, in one commit; so do its deletes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from pyspark.sql import DataFrame

from headgate_spark.batches import channels_of
from headgate_spark.loading import run_load
from headgate_spark.progress import Written
from headgate_tables.face.log import Channels
from headgate_tables.face.owner import Table
from headgate_tables.face.results import CommitResult
from headgate_tables.opening import open_table

_NOTHING: Final = CommitResult("", "", 0, 0, 0, 0, 0)
"""What a batch has done that is in the table already."""


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
    if batch is not None and (channels := channels_of(table, *batch)) is None:
        return _NOTHING
    return run_load(df, table, load, tasks=tasks, storage_options=storage_options, progress=progress, channels=channels)
