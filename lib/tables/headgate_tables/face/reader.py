"""What a reader of a table asks for: rows, commits, files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from headgate_tables.face.definition import Definition
from headgate_tables.face.engines import Engine, EngineSetup
from headgate_tables.face.results import CommitInfo, InstantInfo, SavepointInfo, Verification
from headgate_tables.face.settings import TableSettings
from headgate_tables.storage.store import Store

Mode = Literal["snapshot", "read_optimized"]
Filter = str | pc.Expression | Callable[[pa.Schema], pc.Expression | None]
"""A condition in SQL, a pyarrow expression, or a function that makes one (or None) of the columns that the scan can show."""
Moment = str | datetime
"""An instant or completion time of the timeline, ISO text (UTC without a zone), "10 minutes ago", or a datetime with a zone."""


class LogFile(Protocol):
    """A log file of a slice, by its name without folder."""

    @property
    def name(self) -> str: ...


class FileSlice(Protocol):
    """A base file (name, or None) and the logs on top of it, oldest first."""

    @property
    def partition(self) -> str: ...

    @property
    def file_id(self) -> str: ...

    @property
    def base_instant(self) -> str: ...

    @property
    def base(self) -> str | None: ...

    @property
    def logs(self) -> Sequence[LogFile]: ...


class SliceQuery(Protocol):
    """How the slices of one query are read, also in another process: it pickles."""

    def batches(self, folder: Store, part: FileSlice) -> Iterator[pa.RecordBatch]:
        """The rows of one slice of the query. Errors of a file name it."""


class Rows(Protocol):
    """A query, fixed when it was made; reading it again gives the same rows."""

    @property
    def schema(self) -> pa.Schema:
        """Of the rows."""

    @property
    def as_of(self) -> str:
        """Completion time of the newest commit in it: where a query ``since`` continues."""

    def to_reader(self) -> pa.RecordBatchReader:
        """A stream of record batches; rows come in no particular order."""

    def to_table(self) -> pa.Table:
        """All rows at once."""

    def slices(self) -> Sequence[FileSlice]:
        """The file slices that will be read; they pickle."""

    def slice_query(self) -> SliceQuery:
        """How each of them is read."""


class Matches(Protocol):
    """Rows that a condition selects, as what deletes of them need; fixed when it was made."""

    @property
    def as_of(self) -> str:
        """Completion time of the newest commit in it, "" when there is none."""

    @property
    def partitions(self) -> Mapping[str, int]:
        """Rows by the path of their partition, of those that ``tables`` has read."""

    def tables(self) -> Iterator[pa.Table]:
        """Record key, partition and ordering columns, in pieces of bounded size."""

    def count_unordered(self) -> int:
        """How many of the rows only the table's owner can delete: their ordering value is none that a delete has (rule DE1)."""


class FileGroup(Protocol):
    """All slices of one bucket."""

    def slices(self) -> Sequence[FileSlice]:
        """Oldest first."""


class TableReader(Protocol):
    """Nothing here writes. Everything raises TablesError."""

    @property
    def url(self) -> str:
        """Where the table lies."""

    @property
    def name(self) -> str:
        """The table's own name."""

    @property
    def format_version(self) -> int:
        """Version of the table's format, which may change during its life: Hudi's table version, 8 or 9."""

    @property
    def definition(self) -> Definition | None:
        """None for a table that another program made and that was never adopted."""

    def setup_of(self, engine: Engine) -> EngineSetup:
        """With which statement, settings and options another engine reads and writes this table rightly."""

    @property
    def schema(self) -> pa.Schema:
        """The columns to write rows with."""

    @property
    def settings(self) -> TableSettings:
        """According to the newest slot that this handle knows."""

    @property
    def savepoints(self) -> Sequence[str]:
        """Instants that ``restore`` can go back to, oldest first."""

    def describe_savepoints(self) -> Sequence[SavepointInfo]:
        """What is known of each of them, in the same order; each costs one read. Raises CorruptFileError."""

    def scan(
        self,
        columns: Sequence[str] | None = None,
        partitions: Sequence[str | Mapping[str, Any]] | None = None,
        filter: Filter | None = None,  # noqa: A002 - pyarrow's own name for it
        *,
        mode: Mode = "snapshot",
        as_of: Moment | None = None,
        since: Moment | None = None,
    ) -> Rows:
        """The rows as of now or of the time ``as_of``, or those that commits wrote after ``since``. Reads nothing yet."""

    def matching(self, where: str) -> Matches:
        """The rows that a condition in SQL selects now, for deletes of them. Reads nothing yet."""

    def commits(self) -> Sequence[CommitInfo]:
        """Completed writes of the active timeline, in the order in which they became visible."""

    def instants(self, limit: int = 0) -> Sequence[InstantInfo]:
        """The newest ``limit`` instants (0: all), oldest first; each completed write costs one read."""

    def file_groups(self) -> Sequence[FileGroup]:
        """Live file groups."""

    def verify(self) -> Verification:
        """Compares slots, timeline and files, reading every file's bytes once."""
