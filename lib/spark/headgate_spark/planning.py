"""What a load would do, found out without a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate_spark.scans import ReadingChoice, reading_of
from headgate_spark.types import arrow_schema_of
from headgate_tables.errors import OptionError, UnsupportedTableError
from headgate_tables.face.definition import Definition
from headgate_tables.face.owner import Table
from headgate_tables.face.writing import LoadMode, ReadBy
from headgate_tables.writing import conform, place_deletes

_ONE_TASK_BYTES: Final = 4 << 20
"""Of files, as Spark's plan takes them: a second of one task, and starting more costs as much."""
Load: TypeAlias = LoadMode | Literal["upsert", "delete"]
"""What a load does: base files by one of the modes, or log files of upserts or deletes."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """``files`` to be read, with the ``bytes`` that Spark takes them for: exact where a DataFrame is files as they are, None
    through Spark Connect. ``tasks`` write, and each keeps its share of the rows in memory. ``replaced``: file groups that leave
    the table, None where the rows decide that. ``read_by``: who reads the files; ``why``: the reason when it is Spark.
    """

    files: int
    bytes: int | None
    tasks: int
    replaced: int | None
    read_by: Literal["arrow", "spark"]
    why: str


def plan_bulk_insert(
    df: DataFrame,
    table: Table,
    *,
    mode: LoadMode = "into_empty",
    tasks: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    read_by: ReadBy = "auto",
) -> LoadPlan:
    """What ``bulk_insert`` with these arguments would do. Writes nothing, and takes no table over.

    Raises what a load raises before its job: SchemaError, OptionError, TransactionError for a table that the mode does not fit.
    """
    return plan_of(df, table, mode, setup_of(df, table, mode, tasks=tasks, storage_options=storage_options, read_by=read_by))


@dataclass(frozen=True, slots=True)
class LoadSetup:
    """How a load goes, found out without a job. ``columns``: what tasks get; ``bytes``: as ``LoadPlan`` has them; ``tasks``: that
    write. ``few``: one task reads and writes, for which more would wait longer than for all else.
    """

    definition: Definition
    columns: StructType
    bytes: int | None
    tasks: int
    few: bool
    reading: ReadingChoice


def setup_of(
    df: DataFrame,
    table: Table,
    load: Load,
    *,
    tasks: int | None,
    storage_options: Mapping[str, str] | None,
    read_by: ReadBy = "auto",
) -> LoadSetup:
    """Opens the files that Arrow might read. Raises SchemaError and OptionError."""
    definition = definition_of(table)
    columns = _kept_columns(df, definition, load)
    size = _bytes_of(df)
    count = _number_of_tasks(df, definition, tasks, size)
    few = count == 1 and size is not None and size <= _ONE_TASK_BYTES
    reading = reading_of(df, arrow_schema_of(columns), table.url, storage_options, read_by, few=few)
    return LoadSetup(definition, columns, size, count, few, reading)


def plan_of(df: DataFrame, table: Table, load: Load, setup: LoadSetup) -> LoadPlan:
    """``plan_bulk_insert`` for any load. Raises TransactionError for a table that the load does not fit."""
    match load:
        case "upsert" | "delete":
            replaced: int | None = 0
        case _:
            table.check_bulk_load(load)
            groups = {"into_empty": 0, "insert_overwrite": None}
            replaced = groups[load] if load in groups else len(table.file_groups())
    return LoadPlan(len(df.inputFiles()), setup.bytes, setup.tasks, replaced, setup.reading.by, setup.reading.why)


def definition_of(table: Table) -> Definition:
    """Raises UnsupportedTableError for a table that another program made."""
    if table.definition is None:
        raise UnsupportedTableError(f"{table.url} was not made by this library", fix="Adopt it first.")
    return table.definition


def _kept_columns(df: DataFrame, definition: Definition, load: Load) -> StructType:
    """The columns that tasks get: the table's; of deletes those of record key, partition and ordering. Raises SchemaError for
    a DataFrame that does not have them: each task would find out by itself.
    """
    rows = arrow_schema_of(df.schema).empty_table()
    kept = place_deletes(rows, definition).rows if load == "delete" else conform(rows, definition)
    return StructType([df.schema[name] for name in kept.column_names])


def _number_of_tasks(df: DataFrame, definition: Definition, tasks: int | None, size: int | None) -> int:
    """``tasks``; or one for up to 4 MiB, else one for each bucket of a table without partitions, and Spark's own number of any
    other.
    """
    if tasks is None:
        if size is not None and size <= _ONE_TASK_BYTES:
            return 1
        usual = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
        return usual if definition.partition_by else min(usual, definition.buckets)
    if tasks < 1:
        raise OptionError(f"tasks={tasks}", fix="Use 1 or more.")
    return tasks


def _bytes_of(df: DataFrame) -> int | None:
    try:
        return int(str(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    except PySparkException:
        return None
