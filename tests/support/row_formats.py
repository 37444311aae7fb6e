"""Row formats of a small table, for what only tells one from another."""

import pyarrow as pa

from headgate.definition import TableInfo
from headgate.row_formats import RowFormats

TABLE = TableInfo(
    "events", pa.schema([("id", pa.string())]), ("id",), (), None, 1, hive_style=False, url="", uuid="", table_version=8
)
FORMAT, OTHER_FORMAT = RowFormats(TABLE).upsert, RowFormats(TABLE).delete
