"""PyPaimon with its Rust core: the strongest peer found. A primary-key table of 4 buckets (fewer file groups than ours).

What makes it fast: the two ``native`` options, an absolute path of the warehouse, and one stream writer kept over all
commits (a batch writer made anew for each costs 15 ms more). It neither syncs its files nor merges more than a batch.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pypaimon import CatalogFactory, Schema
from pypaimon.write.native_write import NativeTableWrite

from bench.tables.contenders.contender import KEY, ORDERING, PARTITION

_OPTIONS = {"bucket": "4", "sequence.field": ORDERING, "write.native.enabled": "true", "commit.native.enabled": "true"}


class Paimon:
    """Needs the environment of requirements-paimon.lock. A table that is in ``folder`` already is opened."""

    processes = ()

    def __init__(self, folder: Path, schema: pa.Schema, *, partitioned: bool) -> None:
        catalog = CatalogFactory.create({"warehouse": str(folder.absolute())})
        catalog.create_database("bench", True)
        keys = [PARTITION, KEY] if partitioned else [KEY]
        partition_by = [PARTITION] if partitioned else None
        catalog.create_table("bench.events", Schema.from_pyarrow_schema(schema, partition_by, keys, _OPTIONS), True)
        self._catalog = catalog
        builder = catalog.get_table("bench.events").new_stream_write_builder()
        self._write, self._commit = builder.new_write(), builder.new_commit()
        if type(self._write) is not NativeTableWrite:
            raise RuntimeError(f"PyPaimon fell back to {type(self._write).__name__}; its slow path is no measure")
        self._commits = 0

    def prepare(self, rows: pa.Table) -> pa.Table:
        return rows

    def upsert(self, rows: pa.Table) -> None:
        self._commits += 1
        self._write.write_arrow(rows)
        self._commit.commit(self._write.prepare_commit(self._commits), self._commits)

    def states(self) -> Iterator[tuple[str, pa.Table]]:
        table = self._catalog.get_table("bench.events").copy({"read.native.enabled": "true"})
        builder = table.new_read_builder()
        yield "PyPaimon", builder.new_read().to_arrow(builder.new_scan().plan().splits())
