"""Ours: a merge-on-read table of 8 buckets, each upsert one durable commit."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from hudi import HudiReadOptions, HudiTable

from bench.tables.contenders.contender import KEY, ORDERING, PARTITION
from headgate_tables import hudi


class Headgate:
    """Holds one handle, as a writer does."""

    processes = ()
    _block_format = "parquet"

    def __init__(self, folder: Path, schema: pa.Schema, *, partitioned: bool) -> None:
        self._url = f"file://{folder}"
        days = [PARTITION] if partitioned else []
        self._table = hudi.create_table(self._url, schema, record_key=KEY, partition_by=days, ordering=ORDERING, buckets=8)

        self._table.configure({"hoodie.logfile.data.block.format": self._block_format})

    def prepare(self, rows: pa.Table) -> pa.Table:
        return rows

    def upsert(self, rows: pa.Table) -> None:
        self._table.upsert(rows)

    def states(self) -> Iterator[tuple[str, pa.Table]]:
        """By our reader, and by hudi-rs, which shares no code with it."""
        yield "headgate", hudi.open_table(self._url).scan().to_table()
        yield "hudi-rs", pa.Table.from_batches(HudiTable(self._url).read(HudiReadOptions(projection=self._table.schema.names)))


class HeadgateInAvro(Headgate):
    """With log blocks of Avro rows."""

    _block_format = "avro"


class HeadgateInEither(Headgate):
    """With log blocks of Avro rows where these are no larger."""

    _block_format = "auto"
