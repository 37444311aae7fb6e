"""Bootstrap: a table of another kind, as Spark reads it, becomes a new table by a full copy, in commits of whole partitions.

A partition that has rows in the table is there with all of its source, because one commit made them. So a copy that broke off
goes on with the others; a channel's record says how many are there, so that those of anybody else are noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, functions

from headgate_spark.loading import run_load
from headgate_spark.planning import definition_of
from headgate_spark.progress import Written
from headgate_spark.steps import SourcePartition, Values, condition_of, steps_of
from headgate_spark.types import arrow_schema_of
from headgate_tables.errors import OptionError
from headgate_tables.face.definition import Definition
from headgate_tables.face.log import ChannelRecord
from headgate_tables.face.owner import Table
from headgate_tables.face.results import CommitResult
from headgate_tables.opening import create_table
from headgate_tables.system import System
from headgate_tables.writing import partitions_of

Count: TypeAlias = tuple[Values, int]
"""Rows of the source that have these values in the partition columns."""

STEP_ROWS: Final = 100_000_000
_CHANNEL: Final = "spark-bootstrap"
_HUDI_COLUMN: Final = "_hoodie_"
_DELETED: Final = "_hoodie_is_deleted"


@dataclass(frozen=True, slots=True)
class Copied:
    """What a call copied: ``rows`` of keys of their own, ``superseded`` rows of the same keys. ``skipped``: partitions that an
    earlier call had copied.
    """

    partitions: int = 0
    skipped: int = 0
    commits: int = 0
    rows: int = 0
    superseded: int = 0
    files: int = 0
    bytes: int = 0

    def plus(self, partitions: int, commit: CommitResult) -> Copied:
        """With a step more."""
        return Copied(
            self.partitions + partitions,
            self.skipped,
            self.commits + 1,
            self.rows + commit.upserted,
            self.superseded + commit.superseded,
            self.files + commit.files,
            self.bytes + commit.bytes,
        )


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """Each of the ``steps`` is a commit. ``skipped``: partitions that are there already."""

    steps: Sequence[Sequence[SourcePartition]]
    skipped: int

    @property
    def partitions(self) -> int:
        """To be copied."""
        return sum(map(len, self.steps))

    @property
    def rows(self) -> int:
        """To be read."""
        return sum(part.rows for step in self.steps for part in step)


def bootstrap(
    df: DataFrame,
    url: str,
    *,
    record_key: Sequence[str] | str,
    partition_by: Sequence[str] | str = (),
    ordering: str | None = None,
    buckets: int = 8,
    name: str | None = None,
    step_rows: int = STEP_ROWS,
    tasks: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    planned: Callable[[CopyPlan], object] | None = None,
    progress: Callable[[Written], object] | None = None,
) -> Copied:
    """Creates a table with the columns of ``df``, but those that Hudi adds (``_hoodie_*``), and copies all rows, but those with
    ``_hoodie_is_deleted``. Run again after it broke off, it copies what is not there yet.

    ``df``: of any source, which has to stay as it is until the copy is complete: name a version or a time of it.
    ``record_key``, ``partition_by``, ``ordering``, ``buckets``, ``name``: as of ``create_table``; when it is run again they have
    to be the same. ``step_rows``: of one commit, if no partition has more; a smaller number repeats less after a failure, and
    reads a source more often that cannot leave partitions unread. ``planned`` is called with what is to be copied, before the
    first step. ``tasks``, ``storage_options``: as of ``bulk_insert``; a step is one such load. ``progress``: as there, with the
    sums of all steps.

    Raises TablesError, among them OtherDefinitionError for another table at ``url``, and OptionError when somebody else has
    written partitions there, and when ``df`` changes meanwhile.
    """
    rows = _without_hudis_columns(df)
    with create_table(
        url,
        arrow_schema_of(rows.schema),
        record_key=record_key,
        partition_by=partition_by,
        ordering=ordering,
        buckets=buckets,
        name=name,
        exist_ok=True,
        storage_options=storage_options,
    ) as table:
        plan = _plan_copy(rows, table, step_rows)
        if planned is not None:
            planned(plan)
        return _copy_steps(rows, table, plan, tasks, storage_options, progress)


def _plan_copy(rows: DataFrame, table: Table, step_rows: int) -> CopyPlan:
    """Counts the rows of each partition of the source in a job. Raises OptionError when others have written to the table."""
    there, definition = _partitions_there(table), definition_of(table)
    missing = [part for part in _parts_of(_counts(rows, definition.partition_by), definition) if part.path not in there]
    return CopyPlan(steps_of(missing, step_rows), len(there))


def plan_new_copy(df: DataFrame, partition_by: Sequence[str], step_rows: int = STEP_ROWS) -> CopyPlan:
    """What ``bootstrap`` with these arguments would do for a table that is not there yet."""
    rows = _without_hudis_columns(df)
    return CopyPlan(
        steps_of([SourcePartition(repr(values), count, [values]) for values, count in _counts(rows, partition_by)], step_rows), 0
    )


def _copy_steps(
    rows: DataFrame,
    table: Table,
    plan: CopyPlan,
    tasks: int | None,
    storage_options: Mapping[str, str] | None,
    progress: Callable[[Written], object] | None,
) -> Copied:
    """Runs the loads of a plan."""
    columns, done = definition_of(table).partition_by, Copied(skipped=plan.skipped)
    total = _Total(progress) if progress is not None else None
    for step in plan.steps:
        there = done.skipped + done.partitions
        commit = run_load(
            rows.where(condition_of(columns, step)) if columns else rows,
            table,
            "insert_overwrite" if there else "into_empty",
            tasks=tasks,
            storage_options=storage_options,
            progress=total.add if total else None,
            channels={_CHANNEL: ChannelRecord(0, there + len(step), "", System.real().clock.now_ms())},
            counted=sum(part.rows for part in step),
        )
        if total:
            total.end_step()
        done = done.plus(len(step), commit)
    return done


def _without_hudis_columns(df: DataFrame) -> DataFrame:
    """Those with which Hudi begins a row tell of the files that it read. A row that is marked as deleted is none."""
    if _DELETED in df.columns:
        df = df.where(~functions.coalesce(functions.col(_DELETED), functions.lit(False)))
    return df.select(*(f"`{name}`" for name in df.columns if not name.startswith(_HUDI_COLUMN)))


class _Total:
    """What all steps have written, of which each counts from 0."""

    def __init__(self, progress: Callable[[Written], object]) -> None:
        self._progress = progress
        self._ended = self._now = Written()

    def add(self, of_step: Written) -> None:
        self._now = self._ended + of_step
        self._progress(self._now)

    def end_step(self) -> None:
        self._ended = self._now


def _partitions_there(table: Table) -> set[str]:
    table.own()  # the record of an earlier owner may be newer than the one that this handle has read
    there, record = {group.slices()[-1].partition for group in table.file_groups()}, table.channels.get(_CHANNEL)
    copied = record.offset if record else 0
    if len(there) != copied:
        raise OptionError(
            f"{table.url} has rows in {len(there):,} partitions, and {copied:,} of them were copied",
            fix="Copy to an address of its own, or load partitions with bulk_insert.",
        )
    return there


def _counts(rows: DataFrame, columns: Sequence[str]) -> list[Count]:
    """Of each combination of values that occurs."""
    found = map(tuple, rows.groupBy(*(f"`{name}`" for name in columns)).count().collect())
    return [(tuple(values), int(count)) for *values, count in found if count]


def _parts_of(counts: Sequence[Count], definition: Definition) -> list[SourcePartition]:
    columns = definition.partition_by
    if not columns:
        return [SourcePartition("", rows, [values]) for values, rows in counts]
    schema = pa.schema([definition.schema.field(name) for name in columns])
    values = pa.Table.from_pylist([dict(zip(columns, values, strict=True)) for values, _ in counts], schema=schema)
    codes, paths = partitions_of(values, definition)
    of_path: list[list[Count]] = [[] for _ in paths]
    for code, count in zip(codes.tolist(), counts, strict=True):
        of_path[code].append(count)
    return [
        SourcePartition(path, sum(rows for _, rows in each), [values for values, _ in each])
        for path, each in zip(paths, of_path, strict=True)
    ]
