"""The options of ``spark.read.format("headgate")`` and ``spark.readStream.format("headgate")``."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from headgate_spark import cluster_access
from headgate_spark.cluster_access import ClusterAccess
from headgate_spark.given import STORAGE, given_options, one_of, storage_options, table_named
from headgate_spark.slices import SliceRows
from headgate_spark.types import arrow_schema_of, struct_of
from headgate_tables.errors import OptionError
from headgate_tables.face.owner import Table
from headgate_tables.face.reader import Filter, Mode, Moment
from headgate_tables.opening import open_table

NAMES: Final = ("path", "columns", "mode", "asOf", "since", "startingFrom", "maxCommitsPerTrigger", *cluster_access.NAMES)
_OF_STREAMS: Final = ("startingFrom", "maxCommitsPerTrigger")
Kind = Literal["read", "readStream"]


class SlicePartition(InputPartition):  # type: ignore[misc]
    """A task: one file slice."""

    def __init__(self, rows: SliceRows, part: bytes) -> None:
        super().__init__(part)
        self.rows = rows


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """``url``: of the table, or its name in the cluster of ``access``. ``columns``: empty for all. Moments as the library takes
    them; empty: not given. ``most_commits``: 0 for all.
    """

    url: str
    columns: Sequence[str] = ()
    mode: Mode = "snapshot"
    as_of: str = ""
    since: str = ""
    starting_from: str = ""
    most_commits: int = 0
    storage: Mapping[str, str] = field(default_factory=dict)
    access: ClusterAccess = field(default_factory=ClusterAccess)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """From Spark's, whose names have no case. Raises OptionError for one that is unknown or has a wrong value."""
        storage, others = storage_options(options)
        text = given_options(others, NAMES, f", and {STORAGE}KEY for settings of the storage")
        return cls(
            table_named(text, 'Give its address, .load("s3://lake/orders"), or, with `connect`, its name.'),
            [name.strip() for name in text.get("columns", "").split(",") if name.strip()],
            one_of("mode", text.get("mode", "snapshot"), get_args(Mode)),
            text.get("asOf", ""),
            text.get("since", ""),
            text.get("startingFrom", ""),
            _count(text.get("maxCommitsPerTrigger", "0")),
            storage,
            ClusterAccess.of(text),
        )

    def check(self, kind: Kind) -> SourceOptions:
        """Returns itself. Raises OptionError for options of the other kind of query."""
        if kind == "read" and (self.starting_from or self.most_commits):
            raise OptionError(f"{' and '.join(_OF_STREAMS)} are for streams", fix="Give `asOf` or `since`, or use readStream.")
        if kind == "readStream" and (self.as_of or self.since or self.mode != "snapshot"):
            raise OptionError("a stream has no asOf, since or mode", fix="Say with `startingFrom` where it begins.")
        return self

    def open(self) -> Table:
        """A handle that only reads."""
        url = self.access.url_of(self.url) if self.access.addresses else self.url
        return open_table(url, storage_options=self.storage)

    def struct(self) -> StructType:
        """The columns to read, as Spark's types."""
        with self.open() as table:
            return struct_of(table.scan(list(self.columns) or None).schema)

    def partitions(
        self,
        table: Table,
        schema: StructType,
        *,
        filter: Filter | None = None,  # noqa: A002 - as the library's scan has it
        as_of: Moment | None = None,
        since: Moment | None = None,
    ) -> list[InputPartition]:
        """The slices of one query of the columns that Spark's plan has, in its types, fixed now. The table may have others
        meanwhile.
        """
        rows = table.scan(schema.names, None, filter, mode=self.mode, as_of=as_of, since=since)
        slices = SliceRows(table.url, self.storage, rows.slice_query(), arrow_schema_of(schema))
        return [SlicePartition(slices, pickle.dumps(part)) for part in rows.slices()]


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise OptionError(f"maxCommitsPerTrigger={text!r} is no number", fix="Give how many commits a batch may have; 0 for all.")
    return int(text)
