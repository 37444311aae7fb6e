"""A table of ours beside the oracle that sees the same calls."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate_tables import hudi
from support.oracle import Oracle, Row


class Tracked:
    """``table`` and ``oracle`` take every upsert and delete made here; rows are dictionaries of Python values."""

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        *,
        key: Sequence[str] = ("id",),
        partition: Sequence[str] = (),
        ordering: str | None = None,
        buckets: int = 2,
        **options: Any,
    ) -> None:
        self.path = path
        self.schema = schema
        self.table = hudi.create_table(
            str(path), schema, record_key=key, partition_by=partition, ordering=ordering, buckets=buckets, **options
        )
        self.oracle = Oracle(key, partition, ordering)

    def upsert(self, rows: Sequence[Row]) -> hudi.CommitResult:
        result = self.table.upsert(self.arrow(rows))
        self.oracle.upsert(rows)
        return result

    def delete(self, keys: Sequence[Row]) -> hudi.CommitResult:
        """``keys`` may be whole rows."""
        result = self.table.delete(self.arrow(keys))
        self.oracle.delete(keys)
        return result

    def arrow(self, rows: Sequence[Row]) -> pa.Table:
        """As it is handed to the library."""
        return pa.Table.from_pylist(list(rows), schema=self.schema)

    def expected(self) -> pa.Table:
        """What every reader must give. Only for schemas whose columns are stored as they are given."""
        return pa.Table.from_pylist(self.oracle.rows(), schema=self.schema)
