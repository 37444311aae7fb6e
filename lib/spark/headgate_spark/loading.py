"""One load: a Spark job whose tasks write files under an instant of the driver, which owns the table and commits them.

The job has two steps: each row gets the number of the task that writes its file group, and each task writes its groups' files
itself and returns what it has written. Spark may run a task twice: names are fixed, and the loser reports the winner's file.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StructField, StructType

from headgate_spark.packing import PACKED, PIECES_AT_ONCE
from headgate_spark.planning import Load, LoadSetup, definition_of, setup_of
from headgate_spark.progress import Listener, Written, accumulator_of
from headgate_spark.source_files import Group, SourceRows, shares_of
from headgate_spark.spread import TASK, numbers_of_tasks, positions
from headgate_spark.tasks import REPORT, Packing, Placing, Report, Writing, collected
from headgate_spark.types import arrow_schema_of
from headgate_tables.errors import CorruptFileError, OptionError, SchemaError
from headgate_tables.face.log import Channels
from headgate_tables.face.owner import Table
from headgate_tables.face.results import CommitResult
from headgate_tables.face.writing import ReadBy
from headgate_tables.system import System

_MOST_SHARE: Final = 128 << 20
_LEAST_SHARE: Final = 4 << 20
"""Bytes of files that a task reads, as far as row groups allow it."""


def run_load(
    df: DataFrame,
    table: Table,
    load: Load,
    *,
    tasks: int | None,
    storage_options: Mapping[str, str] | None,
    progress: Callable[[Written], object] | None,
    channels: Channels | None = None,
    counted: int | None = None,
    read_by: ReadBy = "auto",
) -> CommitResult:
    """Writes the rows in one commit. ``channels``: records that change with it, also when there is no row. ``counted``: the rows
    that ``df`` had before; with another number nothing is committed.

    Raises TablesError, that of a task as what it was there; DeposedError when the table gets another owner, which ends the job.
    """
    table.own()  # its definition may be newer than the one that this handle has read
    setup = setup_of(df, table, load, tasks=tasks, storage_options=storage_options, read_by=read_by)
    return run_prepared(
        df, table, load, setup, storage_options=storage_options, progress=progress, channels=channels, counted=counted
    )


def run_prepared(
    df: DataFrame,
    table: Table,
    load: Load,
    setup: LoadSetup,
    *,
    storage_options: Mapping[str, str] | None,
    progress: Callable[[Written], object] | None,
    channels: Channels | None = None,
    counted: int | None = None,
) -> CommitResult:
    """``run_load`` by what ``setup_of`` found. Raises SchemaError, too, when the table is another by now."""
    epoch, definition = table.own(), setup.definition
    if definition_of(table) != definition:
        raise SchemaError(f"{table.url} was altered while the load was planned", fix="Run the load again.")
    definition = definition_of(table)  # equal, but for its file groups, which others may have replaced since
    listener = Listener(progress)
    with table.transaction() as transaction:
        match load:
            case "upsert" | "delete":
                transaction.announce()
            case _:
                transaction.announce_bulk_load(load)
        writing = Writing(
            url=table.url,
            storage_options=storage_options,
            definition=definition,
            instant=transaction.instant,
            epoch=epoch,
            process=System.real().ids.token(),
            settings=table.settings.to_texts(),
            load=load,
            accumulator=accumulator_of(df.sparkSession, listener) if progress is not None else None,
            packed=setup.reading.groups is not None,
        )
        placing = Placing(definition, numbers_of_tasks(setup.tasks), load == "delete")
        if (groups := setup.reading.groups) is None:
            rows = _rows_by_spark(df, setup.columns, placing)
        else:
            source = SourceRows(arrow_schema_of(setup.columns), table.url, storage_options)
            rows = _rows_by_arrow(df, source, placing, groups)
        report = _run(rows, writing, setup, table.check_owner)
        for at, why in transaction.find_false(report.statuses).items():
            raise CorruptFileError(
                f"a task reported {report.statuses[at].stat.path} wrongly: {why}",
                fix="Look for what removes files there, and run the load again.",
            )
        if listener.failed is not None:
            raise listener.failed
        _check_count(report, counted)
        transaction.add(report.statuses)
        return dataclasses.replace(transaction.commit(channels=channels), superseded=report.beaten)


def _check_count(report: Report, counted: int | None) -> None:
    rows = sum(status.stat.rows for status in report.statuses) + report.beaten
    if counted is not None and rows != counted:
        raise OptionError(
            f"the DataFrame gave {rows:,} rows, and had {counted:,} when they were counted",
            fix="Let it read a version that stays as it is: a snapshot or a time (versionAsOf, snapshot-id, as.of.instant), or "
            "files that nobody writes any more.",
        )


def _rows_by_spark(df: DataFrame, columns: StructType, placing: Placing) -> DataFrame:
    placed = StructType([*columns.fields, StructField(TASK, IntegerType(), nullable=False)])
    return df.select(*(f"`{name}`" for name in columns.names)).mapInArrow(placing.place, placed)


def _rows_by_arrow(df: DataFrame, source: SourceRows, placing: Placing, groups: Sequence[Group]) -> DataFrame:
    """In pieces. The session is one of its own, so that this setting is no other query's."""
    session = df.sparkSession.newSession()
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(PIECES_AT_ONCE))
    each = sum(group.bytes for group in groups) // session.sparkContext.defaultParallelism
    shares = [pickle.dumps(share) for share in shares_of(groups, min(max(each, _LEAST_SHARE), _MOST_SHARE))]
    return positions(session, len(shares)).mapInArrow(Packing(source, placing, shares).pack, PACKED)


def _run(rows: DataFrame, writing: Writing, setup: LoadSetup, check_owner: Callable[[], None]) -> Report:
    """The job. Few rows need no shuffle and no second stage; of many, one task that writes is no reason to read with one.

    Raises the TablesError of a task as such, and as ``jobs_while_owned``.
    """
    sent = rows.coalesce(1) if setup.few else rows.repartition(setup.tasks, TASK)
    return collected(sent.mapInArrow(writing.write, REPORT), check_owner)
