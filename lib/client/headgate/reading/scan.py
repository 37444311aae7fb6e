"""Rows of a table for other libraries: Arrow, pandas, Polars, DuckDB, and anything that takes an Arrow stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.reading.library import needs, translated

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

    from headgate_tables.face.reader import Rows


class Scan:
    """A query, fixed when it was made: reading it again gives the same rows, in no particular order. Made by ``scan``.

    It may be read many times and by several threads. A query that is read for longer than the table keeps replaced files
    (``headgate.clean.min.age``) raises UnreadableTableError: make it again.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @property
    def schema(self) -> pa.Schema:
        """Of the rows."""
        return self._rows.schema

    @property
    def as_of(self) -> str:
        """Completion time of the newest commit that counts: pass it as ``since`` to read on from here. "" before the first."""
        return self._rows.as_of

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Reads batch by batch, so that memory does not grow with the table. Raises HeadgateError."""
        with translated():
            yield from self._rows.to_reader()

    def to_reader(self) -> pa.RecordBatchReader:
        """The batches as a stream of pyarrow."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def to_arrow(self) -> pa.Table:
        """All rows. Raises HeadgateError."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """All rows. ``options``: of ``pyarrow.Table.to_pandas``.

        Without options no value changes: a column of integers with nulls becomes pandas' Int32 or Int64, and not float64; lists,
        structs and maps with integers become Python's own objects.
        Raises MissingExtraError, HeadgateError.
        """
        with needs("pandas"):
            import pandas as pd
        rows = self.to_arrow()
        frame: pd.DataFrame = rows.to_pandas(**options)
        if not options:
            kinds: dict[pa.DataType, Any] = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()}
            for field in rows.schema:
                column = rows[field.name]
                if field.type in kinds and column.null_count:
                    frame[field.name] = column.to_pandas(types_mapper=lambda kind: kinds[kind])
                elif field.type.num_fields and _has_integers(field.type):  # beside a null they would become floats
                    frame[field.name] = pd.Series(column.to_pylist(), dtype=object, index=frame.index)
        return frame

    def to_polars(self) -> pl.DataFrame:
        """All rows. Raises MissingExtraError, HeadgateError."""
        with needs("polars"):
            import polars as pl
        return pl.DataFrame(self.to_arrow())

    def to_duckdb(self, con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """A relation of this connection: ``scan.to_duckdb(con).aggregate("count(*)")``, or ``.create_view("orders")``.

        Nothing is read yet, and each query on it reads once, as a stream. DuckDB's own conditions prune no files: give
        ``columns`` and ``where`` to the scan.
        """
        return con.from_arrow(self)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]


def _has_integers(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or any(_has_integers(kind.field(at).type) for at in range(kind.num_fields))
