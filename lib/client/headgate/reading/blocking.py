"""Reading a table: by name through a connection, or by address without a cluster. Rows come from the table's storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headgate.reading.library import Moment, Options, Query, find, select
from headgate.reading.located import Located, LocatedByAddress, LocatedByName
from headgate.reading.scan import Scan

if TYPE_CHECKING:
    import pyarrow.compute as pc


class Readable(Located):
    """What can be read."""

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | pc.Expression | None = None,
        *,
        partitions: Sequence[str | Mapping[str, object]] | None = None,
        as_of: Moment | None = None,
        since: Moment | None = None,
        read_optimized: bool = False,
        storage_options: Options = None,
    ) -> Scan:
        """Returns the rows as they are now, or were, for Arrow, pandas, Polars or DuckDB. Needs ``pip install 'headgate[read]'``.

        ``where``: a condition in SQL (columns and values with =, <>, <, <=, >, >=, IN, BETWEEN, LIKE, IS NULL, AND, OR, NOT), or
        a pyarrow expression. Columns, partitions and row groups that are not wanted are not read. ``partitions``: their paths, or
        mappings of partition columns to values.

        ``as_of``: the table as it was then: an instant, a ``datetime`` with a zone, text such as "2026-11-22 10:00" (UTC) or
        "10 minutes ago". ``since``: only rows of commits that completed after then, in their newest version; deleted rows are
        not among them. ``read_optimized``: base files alone, fast, and as old as the last compaction.

        This program reads the storage itself, with credentials of its own: from the environment (AWS_*, GOOGLE_*, AZURE_*) and
        ``storage_options``. Rows are those of the newest commit: ``flush`` first to see what was just sent.

        Raises MissingExtraError, InvalidArgumentError, SchemaError, TableNotFoundError for a place that has no table,
        PermissionDeniedError, RangeGoneError, UnavailableError, UnreadableTableError::

            today = orders.scan(["id", "at"], where="day >= '2026-01-01' AND id < 100").to_arrow()
            earlier = orders.scan(as_of="10 minutes ago").to_pandas()
        """
        query = Query(columns, where, partitions, as_of, since, read_optimized)
        return Scan(select(*self._place(storage_options), query))


class ReadableByName(LocatedByName, Readable):
    """A table of a cluster."""


class StoredTable(LocatedByAddress, Readable):
    """A table at an address, to read; made by ``headgate.open``."""


def open(address: str, *, storage_options: Options = None) -> StoredTable:  # noqa: A001 - read as headgate.open
    """Opens a table by its address, without a cluster: ``s3://…``, ``gs://…``, ``abfss://…``, or a path. Reads alone.

    ``storage_options``: settings of the object store beside those of the environment, such as ``{"endpoint": "http://…"}``.
    Tables of any program that writes Hudi's table version 8 or 9 can be read. Raises as ``Table.scan``::

        flights = headgate.open(orders.info.url)
        print(flights.scan(where="id = 1").to_polars())
    """
    return StoredTable(find(address, storage_options), storage_options)
