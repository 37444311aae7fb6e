"""Ours: a merge-on-read table of 8 buckets, each upsert one durable commit."""

from pathlib import Path

import pyarrow as pa
from headgate_tables import hudi

from bench.tables.contenders.contender import KEY, ORDERING, PARTITION


class Headgate:
    """Holds one handle, as a writer does."""

    processes = ()

    def __init__(self, folder: Path, schema: pa.Schema, *, partitioned: bool) -> None:
        self._url = f"file://{folder}/table"
        partition_by = [PARTITION] if partitioned else []
        self._table = hudi.create_table(self._url, schema, record_key=[KEY], partition_by=partition_by, ordering=ORDERING, buckets=8)

    def prepare(self, rows: pa.Table) -> pa.Table:
        return rows

    def upsert(self, rows: pa.Table) -> None:
        self._table.upsert(rows)

    def rows(self) -> pa.Table:
        return hudi.open_table(self._url).scan().to_table()


class HeadgateReadByHudiRs(Headgate):
    """The same writer; hudi-rs, which shares no code with it, says what the table holds."""

    def rows(self) -> pa.Table:
        from hudi import HudiReadOptions, HudiTable

        return pa.Table.from_batches(HudiTable(self._url).read(HudiReadOptions(projection=self._table.schema.names)))
