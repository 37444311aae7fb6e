"""Reading a table for asyncio: the same methods, awaited. Files are read on threads, so that the event loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headgate.reading import scan
from headgate.reading.library import Moment, Options, Query, find, select
from headgate.reading.located import Located, LocatedByAddress, LocatedByName

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.compute as pc


class Scan:
    """A query, fixed when it was made. ``blocking`` is the same query for code on other threads."""

    def __init__(self, found: scan.Scan) -> None:
        self.blocking = found
        self.schema = found.schema
        self.as_of = found.as_of

    async def batches(self) -> AsyncIterator[pa.RecordBatch]:
        """Reads batch by batch: ``async for batch in scan.batches()``."""
        batches = self.blocking.batches()
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            yield batch

    async def to_arrow(self) -> pa.Table:
        return await asyncio.to_thread(self.blocking.to_arrow)

    async def to_pandas(self, **options: Any) -> pd.DataFrame:
        return await asyncio.to_thread(self.blocking.to_pandas, **options)

    async def to_polars(self) -> pl.DataFrame:
        return await asyncio.to_thread(self.blocking.to_polars)

    def to_duckdb(self, con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """As the blocking one: nothing is read before a query on the relation, which blocks its thread."""
        return self.blocking.to_duckdb(con)

    def __arrow_c_schema__(self) -> object:
        return self.blocking.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.blocking.__arrow_c_stream__(requested_schema)


class Readable(Located):
    """What can be read."""

    async def scan(
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
        """As the blocking one: ``rows = await (await orders.scan(where="id = 1")).to_arrow()``."""
        query = Query(columns, where, partitions, as_of, since, read_optimized)
        return Scan(scan.Scan(await asyncio.to_thread(select, *self._place(storage_options), query)))


class ReadableByName(LocatedByName, Readable):
    """A table of a cluster."""


class StoredTable(LocatedByAddress, Readable):
    """A table at an address, to read; made by ``headgate.aio.open``."""


async def open(address: str, *, storage_options: Options = None) -> StoredTable:  # noqa: A001 - read as headgate.aio.open
    """As ``headgate.open``."""
    return StoredTable(await asyncio.to_thread(find, address, storage_options), storage_options)
