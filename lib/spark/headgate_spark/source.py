"""The data source "headgate" of PySpark 4: tables in Spark SQL and Structured Streaming, read without a Hudi jar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from headgate_spark.carried import carrying
from headgate_spark.changes import ChangesReader
from headgate_spark.pushed import expression_of
from headgate_spark.sink_options import DirectOptions, sink_options
from headgate_spark.source_options import SlicePartition, SourceOptions
from headgate_tables.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql.datasource import (  # Filter and streams of Arrow: PySpark 4.1
        DataSourceArrowWriter,
        DataSourceStreamArrowWriter,
        Filter,
    )


def register(spark: SparkSession) -> None:
    """Makes ``format("headgate")`` known to a session, also over Spark Connect, and has its filters pushed into reads: sets
    ``spark.sql.python.filterPushdown.enabled`` (PySpark 4.1), which counts for all data sources in Python.
    """
    spark.dataSource.register(HeadgateSource)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


class HeadgateSource(DataSource):  # type: ignore[misc]
    """Options: those of ``SourceOptions``."""

    @classmethod
    def name(cls) -> str:
        """For ``format``."""
        return "headgate"

    def schema(self) -> StructType:
        """The columns of the table now: what a DataFrame shows later, too."""
        with carrying():
            return SourceOptions.of(self.options).struct()

    def reader(self, schema: StructType) -> TableReader:
        """For ``read``."""
        with carrying():
            return TableReader(SourceOptions.of(self.options).check("read"), schema)

    def streamReader(self, schema: StructType) -> ChangesReader:
        """For ``readStream``."""
        with carrying():
            return ChangesReader(SourceOptions.of(self.options).check("readStream"), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002 - Spark's signature
        """For ``write``: through a cluster, or, without ``connect``, into a table by its address."""
        with carrying():
            _refuse_overwrite(overwrite=overwrite)
            options = sink_options(self.options)
            if isinstance(options, DirectOptions):
                from headgate_spark.direct_sink import DirectWriter  # PySpark 4.1; 4.0 can read

                return DirectWriter(options)
            from headgate_spark.sink import ClusterWriter  # the SDK, without which tables are read and written

            return ClusterWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: ARG002 - as above
        """For ``writeStream``, as ``writer``."""
        with carrying():
            _refuse_overwrite(overwrite=overwrite)
            options = sink_options(self.options)
            if isinstance(options, DirectOptions):
                from headgate_spark.direct_sink import DirectStreamWriter  # as above

                return DirectStreamWriter(options)
            from headgate_spark.sink import ClusterStreamWriter

            return ClusterStreamWriter(options)


def _refuse_overwrite(*, overwrite: bool) -> None:
    if overwrite:
        raise OptionError(
            "a table is not overwritten in this way",
            fix='Use .mode("append"), or headgate_spark.bulk_insert with mode="insert_overwrite".',
        )


class TableReader(DataSourceReader):  # type: ignore[misc]
    """The rows of one commit, or what changed since one: a task for each file slice."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._pushed: Sequence[Filter] = ()

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:
        """Uses them, and leaves all of them to Spark as well."""
        self._pushed = filters
        return filters

    def partitions(self) -> list[InputPartition]:
        """Runs when the query is planned: later actions of the plan read the same commit."""
        options = self._options
        with carrying(), options.open() as table:
            pushed = partial(expression_of, self._pushed)
            return options.partitions(
                table, self._schema, filter=pushed, as_of=options.as_of or None, since=options.since or None
            )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one slice. Spark asks for a partition of its own when there is none."""
        if isinstance(partition, SlicePartition):
            yield from partition.rows.read(iter([partition.value]))
