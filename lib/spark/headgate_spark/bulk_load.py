"""Bulk load: a DataFrame becomes base files, in one commit: of an empty table, or instead of rows that are there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from pyspark.sql import DataFrame

from headgate_spark.loading import run_load
from headgate_spark.progress import Written
from headgate_tables.errors import OptionError
from headgate_tables.face.owner import Table
from headgate_tables.face.results import CommitResult
from headgate_tables.face.writing import LoadMode, ReadBy
from headgate_tables.opening import open_table

_MODES: Final[tuple[LoadMode, ...]] = ("into_empty", "insert_overwrite", "insert_overwrite_table")


def bulk_insert(
    df: DataFrame,
    table: str | Table,
    *,
    mode: LoadMode = "into_empty",
    tasks: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: Callable[[Written], object] | None = None,
    read_by: ReadBy = "auto",
) -> CommitResult:
    """Writes all rows of ``df``, which has the table's columns, in one commit; durable and visible when this returns.

    Of rows of one key the one with the largest ordering value is written, of equal ones any. ``table``: a URL that drivers and
    executors reach, or an open handle. ``mode``: ``into_empty`` wants a table that never had rows; ``insert_overwrite`` replaces
    the rows of the partitions that ``df`` has rows of, ``insert_overwrite_table`` all rows, and both want that no compaction is
    open. ``storage_options``: for the executors, and for a URL. ``tasks``: number of writing tasks; the rows of one task wait in
    its memory, three times over, so more tasks need less memory each; by default one for up to 4 MiB (as Spark's plan says),
    which then reads too, else one for each bucket of a table without partitions, and ``spark.sql.shuffle.partitions`` otherwise.
    A bucket is written by one task as one file, so tables need buckets enough. ``progress`` is called from another thread with
    the sums of all finished tasks, whenever one has ended; not through Spark Connect.

    ``read_by``: where ``df`` is Parquet files as they are (``spark.read.parquet(…)`` and no more), tasks read these by Arrow,
    which takes half of the CPU, if that gives the same rows and they reach the files: those of this machine, and of the service
    that has the table, with the table's settings. Spark reads all else, and what one task reads and writes:
    ``plan_bulk_insert`` says who, and why. "spark" lets Spark read in any case; "arrow" raises OptionError where that would give
    other rows, and reads files in another service than the table, too, with what the environment says.

    A driver that dies leaves nothing visible and blocks nobody: run the load again. Tasks may fail, or run twice, as long as
    ``df`` gives the same rows each time. Raises TablesError; a task's too arrives as what it was.
    """
    if mode not in _MODES:
        other = " delete_partitions() removes partitions." if mode == "delete_partition" else ""
        raise OptionError(f"mode={mode!r}", fix=f"Use one of {', '.join(_MODES)}.{other}")
    if isinstance(table, str):
        with open_table(table, storage_options=storage_options) as opened:
            return bulk_insert(
                df, opened, mode=mode, tasks=tasks, storage_options=storage_options, progress=progress, read_by=read_by
            )
    return run_load(df, table, mode, tasks=tasks, storage_options=storage_options, progress=progress, read_by=read_by)


def delete_partitions(
    table: str | Table, partitions: Collection[str], *, storage_options: Mapping[str, str] | None = None
) -> CommitResult:
    """Removes all rows of these partitions in one commit, without a Spark job; see ``Table.delete_partitions``."""
    if isinstance(table, str):
        with open_table(table, storage_options=storage_options) as opened:
            return opened.delete_partitions(partitions)
    return table.delete_partitions(partitions)
