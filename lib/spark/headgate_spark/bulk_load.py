"""Bulk load: a DataFrame becomes base files, in one commit: of an empty table, or instead of rows that are there.

The driver owns the table. The job has two steps: each row gets the number of the task that writes its file group, and each
task writes its groups' files itself and returns what it has written. Spark may run a task twice; see ``BulkFiles``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StructField, StructType

from headgate_spark.carried import carried_by
from headgate_spark.planning import check_columns, definition_of, number_of_tasks
from headgate_spark.progress import Listener, Written, accumulator_of
from headgate_spark.spread import TASK, numbers_of_tasks
from headgate_spark.tasks import REPORT, Placing, Report, Writing
from headgate_tables.errors import CorruptFileError, OptionError
from headgate_tables.face.owner import Table
from headgate_tables.face.results import CommitResult
from headgate_tables.face.writing import LoadMode
from headgate_tables.opening import open_table
from headgate_tables.system import System

_MODES: Final[tuple[LoadMode, ...]] = ("into_empty", "insert_overwrite", "insert_overwrite_table")


def bulk_insert(
    df: DataFrame,
    table: str | Table,
    *,
    mode: LoadMode = "into_empty",
    tasks: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: Callable[[Written], object] | None = None,
) -> CommitResult:
    """Writes all rows of ``df``, which has the table's columns, in one commit; durable and visible when this returns.

    Of rows of one key the one with the largest ordering value is written, of equal ones any. ``table``: a URL that drivers and
    executors reach, or an open handle. ``mode``: ``into_empty`` wants a table that never had rows; ``insert_overwrite`` replaces
    the rows of the partitions that ``df`` has rows of, ``insert_overwrite_table`` all rows, and both want that no compaction is
    open. ``storage_options``: for the executors, and for a URL. ``tasks``: number of writing tasks; the rows of one task wait in
    its memory, three times over, so more tasks need less memory each; by default one for each bucket of a table without
    partitions, and ``spark.sql.shuffle.partitions`` otherwise. A bucket is written by one task as one file, so tables need
    buckets enough. ``progress`` is called from another thread with the sums of all finished tasks, whenever one has ended; not
    through Spark Connect.

    A driver that dies leaves nothing visible and blocks nobody: run the load again. Tasks may fail, or run twice, as long as
    ``df`` gives the same rows each time. Raises TablesError; a task's too arrives as what it was.
    """
    if mode not in _MODES:
        other = " delete_partitions() removes partitions." if mode == "delete_partition" else ""
        raise OptionError(f"mode={mode!r}", fix=f"Use one of {', '.join(_MODES)}.{other}")
    if isinstance(table, str):
        with open_table(table, storage_options=storage_options) as opened:
            return _load(df, opened, mode, tasks, storage_options, progress)
    return _load(df, table, mode, tasks, storage_options, progress)


def delete_partitions(
    table: str | Table, partitions: Collection[str], *, storage_options: Mapping[str, str] | None = None
) -> CommitResult:
    """Removes all rows of these partitions in one commit, without a Spark job; see ``Table.delete_partitions``."""
    if isinstance(table, str):
        with open_table(table, storage_options=storage_options) as opened:
            return opened.delete_partitions(partitions)
    return table.delete_partitions(partitions)


def _load(
    df: DataFrame,
    table: Table,
    mode: LoadMode,
    tasks: int | None,
    storage_options: Mapping[str, str] | None,
    progress: Callable[[Written], object] | None,
) -> CommitResult:
    epoch = table.own()
    definition = definition_of(table)
    check_columns(df, definition)
    count = number_of_tasks(df, definition, tasks)
    listener = Listener(progress)
    with table.transaction() as transaction:
        transaction.announce_bulk_load(mode)
        writing = Writing(
            url=table.url,
            storage_options=storage_options,
            definition=definition,
            instant=transaction.instant,
            epoch=epoch,
            process=System.real().ids.token(),
            settings=table.settings.to_texts(),
            overwriting=mode != "into_empty",
            accumulator=accumulator_of(df.sparkSession, listener) if progress is not None else None,
        )
        report = _run(df, Placing(definition, numbers_of_tasks(df.sparkSession, count)), writing, count)
        for at, why in transaction.find_false(report.statuses).items():
            raise CorruptFileError(
                f"a task reported {report.statuses[at].stat.path} wrongly: {why}",
                fix="Look for what removes files there, and run the load again.",
            )
        if listener.failed is not None:
            raise listener.failed
        transaction.add(report.statuses)
        return dataclasses.replace(transaction.commit(), superseded=report.beaten)


def _run(df: DataFrame, placing: Placing, writing: Writing, count: int) -> Report:
    """The job. Raises the TablesError of a task as such."""
    columns = StructType([df.schema[name] for name in writing.definition.schema.names])
    placed = StructType([*columns.fields, StructField(TASK, IntegerType(), nullable=False)])
    rows = df.select(*(f"`{name}`" for name in columns.names)).mapInArrow(placing.place, placed)
    written = rows.repartition(count, TASK).mapInArrow(writing.write, REPORT)
    try:
        found: list[Any] = written.collect()
    except Exception as failed:
        if (error := carried_by(failed)) is not None:
            raise error from failed
        raise
    return Report.of(found)
