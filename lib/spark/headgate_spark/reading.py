"""A table's rows as a DataFrame: the driver plans one commit's file slices, and a task reads each with the library's reader."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate_spark.carried import carried_by
from headgate_spark.slices import SliceRows
from headgate_spark.spread import positions
from headgate_spark.types import shown_schema, struct_of
from headgate_tables.face.owner import Table
from headgate_tables.face.reader import Filter, Mode, Moment
from headgate_tables.opening import open_table


def read(
    spark: SparkSession,
    table: str | Table,
    *,
    columns: Sequence[str] | None = None,
    partitions: Sequence[str | Mapping[str, object]] | None = None,
    filter: Filter | None = None,  # noqa: A002 - as the library's scan has it
    mode: Mode = "snapshot",
    as_of: Moment | None = None,
    since: Moment | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows of one commit, a task for each file slice; the types are those that Hudi's own reader shows in Spark.

    ``table``: a URL that drivers and executors reach, or an open handle. ``columns``, ``partitions``, ``filter``, ``mode``,
    ``as_of`` and ``since``: as the library's ``Table.scan`` takes them. What they leave out is not read; a ``select`` or a
    ``where`` of the DataFrame comes after reading. ``storage_options``: for the executors, and for a URL.

    The slices are found out here, once: each action gives the same rows, until cleaning removes their files. A task keeps the
    logs of its slice, the keys of their rows and one batch of its base file in memory. Raises TablesError; for errors of tasks,
    see ``typed_errors``.
    """
    if isinstance(table, str):
        with open_table(table, storage_options=storage_options) as opened:
            return read(
                spark,
                opened,
                columns=columns,
                partitions=partitions,
                filter=filter,
                mode=mode,
                as_of=as_of,
                since=since,
                storage_options=storage_options,
            )
    rows = table.scan(columns, partitions, filter, mode=mode, as_of=as_of, since=since)
    parts = [pickle.dumps(part) for part in rows.slices()]
    slices = SliceRows(table.url, storage_options, rows.slice_query(), shown_schema(rows.schema))
    task = Reading(slices, parts)
    return positions(spark, len(parts)).mapInArrow(task.read, struct_of(rows.schema))


@dataclass(frozen=True, slots=True)
class Reading:
    """Goes to every task, pickled. ``parts``: the slices, pickled one by one, so that a task unpickles its own alone."""

    slices: SliceRows
    parts: Sequence[bytes]

    def read(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Positions in ``parts`` in, the rows of these slices out."""
        wanted = (int(number) for batch in numbers for number in batch.column(0).to_numpy())
        yield from self.slices.read(self.parts[number] for number in wanted)


@contextlib.contextmanager
def typed_errors() -> Iterator[None]:
    """Raises an error of a task that reads or loads as the TablesError that it was there, which names the file::

    with typed_errors():
        read(spark, "s3://lake/orders").count()
    """
    try:
        yield
    except Exception as failed:
        if (error := carried_by(failed)) is not None:
            raise error from failed
        raise
