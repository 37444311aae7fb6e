"""The rows that commits write, as a stream of Spark: an offset is the completion time of the newest commit that was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import streaming
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from headgate_spark.carried import carrying
from headgate_spark.source_options import SlicePartition, SourceOptions
from headgate_tables.face.owner import Table

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit  # PySpark 4.2

SINCE: Final = "since"
_NOTHING: Final = ""
"""The offset before the first batch, which has the table's rows and not the commits that wrote them."""
Offset = Mapping[str, str]
_limits = vars(streaming).get("datasource")  # PySpark 4.2
_AvailableNow = getattr(_limits, "SupportsTriggerAvailableNow", object)


class ChangesReader(DataSourceStreamReader, _AvailableNow):  # type: ignore[misc, valid-type]
    """A batch has each row once that the commits between two offsets wrote, as the last of them left it; deleted rows are not in
    it. Without ``startingFrom`` the first batch is the whole table.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._table: Table | None = None
        self._last = ""
        self._newest = ""

    def initialOffset(self) -> Offset:
        """Where a new query begins; one that is started again goes on from its checkpoint."""
        with carrying():
            match self._options.starting_from or "snapshot":
                case "snapshot":
                    return {SINCE: _NOTHING}
                case "latest":
                    return {SINCE: self._open().scan().as_of}
                case moment:
                    return {SINCE: self._open().scan(as_of=moment).as_of}

    def getDefaultReadLimit(self) -> ReadLimit:
        """``maxCommitsPerTrigger`` as a limit of files: Spark has none of commits, and gives it back as it is."""
        most = self._options.most_commits
        return _limits.ReadMaxFiles(most) if most else _limits.ReadAllAvailable()

    def latestOffset(self, start: Offset | None = None, limit: ReadLimit | None = None) -> Offset:
        """The newest commit that the next batch may have. PySpark before 4.2 says neither start nor limit."""
        with carrying():
            since = start[SINCE] if start is not None else _NOTHING
            commits = [each.completion for each in self._open().commits() if each.completion > since]
        self._newest = commits[-1] if commits else since
        if self._last:
            commits = [completion for completion in commits if completion <= self._last]
        most = getattr(limit, "max_files", 0) if since != _NOTHING else 0
        commits = commits[:most] if most else commits
        return {SINCE: commits[-1] if commits else since}

    def reportLatestOffset(self) -> Offset:
        """The newest commit when the last batch was planned, for the query's progress."""
        return {SINCE: self._newest}

    def prepareForTriggerAvailableNow(self) -> None:
        """The query ends with the newest commit of now."""
        with carrying():
            self._last = self._open().scan().as_of

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """A task for each file slice that has rows of these commits."""
        if start == end:
            return []
        with carrying():
            return self._options.partitions(self._open(), self._schema, since=start[SINCE] or None, as_of=end[SINCE])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one slice."""
        if isinstance(partition, SlicePartition):
            yield from partition.rows.read(iter([partition.value]))

    def stop(self) -> None:
        """The query has ended."""
        if self._table is not None:
            self._table.close()

    def _open(self) -> Table:
        if self._table is None:
            self._table = self._options.open()
        return self._table
