"""The row formats of a table."""

import pyarrow as pa

from headgate.definition import TableInfo
from headgate.errors import InvalidArgumentError
from headgate.rows import RowFormat
from headgate_proto.api.v1 import ingest_pb2 as wire


class RowFormats:
    """Of one table; each is made once. ``table``: with the columns that they have."""

    def __init__(self, table: TableInfo) -> None:
        self.upsert = RowFormat(table, wire.OPERATION_UPSERT)
        self.delete = RowFormat(table, wire.OPERATION_DELETE)
        self.table = table
        self._mixed: dict[tuple[str, pa.DataType], RowFormat] = {}

    def altered(self, columns: bytes) -> "RowFormats":
        """Those of the table with the columns of this schema message: it may have been altered since it was described."""
        table = self.table.with_columns(columns)
        return self if table.schema == self.table.schema else RowFormats(table)

    def mixed(self, column: str, operation_type: pa.DataType) -> RowFormat:
        """The format whose operation is in ``column``. Raises InvalidArgumentError when the table has a column of that name."""
        if column in self.table.schema.names:
            raise InvalidArgumentError(
                f"{column!r} is a column of the table", fix="Name another column for the operations: operation_column=…."
            )
        if (column, operation_type) not in self._mixed:
            self._mixed[column, operation_type] = RowFormat(self.table, wire.OPERATION_MIXED, column, operation_type)
        return self._mixed[column, operation_type]

    def like(self, other: RowFormat) -> RowFormat:
        """The format of the same operation as ``other``, of these or of those of the table's earlier columns."""
        match other.operation:
            case wire.OPERATION_UPSERT:
                return self.upsert
            case wire.OPERATION_DELETE:
                return self.delete
            case _:
                return self.mixed(other.operation_column, other.schema.field(other.operation_column).type)
