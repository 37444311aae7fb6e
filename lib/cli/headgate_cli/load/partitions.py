"""Rows without a partition: what a folder cannot be named is found before the rows are sent, so that an error names the row."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pat

from headgate.errors import RowError
from headgate_cli.reading.text_values import Array
from headgate_tables.arrow import pc
from headgate_tables.hive_folders import MAX_FOLDER_BYTES, NO_FOLDERS

_NO_FOLDERS = pa.array(sorted(NO_FOLDERS))


def check_partitions(rows: pa.RecordBatch, partition_by: Sequence[str]) -> None:
    """Raises RowError for the first row whose partition no folder can be named after: null, an empty text, ``..``.

    Writers know a table's settings and refuse more: names that grow too long by escapes, or that are Hudi's own.
    """
    wrong = {name: at for name in partition_by if (at := _without_folder(rows.column(name)).index(True).as_py()) >= 0}
    if not wrong:
        return
    name = min(wrong, key=lambda each: wrong[each])
    value = rows.column(name)[wrong[name]].as_py()
    what = f"has no value in {name!r}" if value is None else f"has {value[:40]!r} in {name!r}, which no folder can be named"
    raise RowError(
        f"row {wrong[name]} {what}",
        fix="Give a value, such as 'unknown': this column names the row's partition.",
        row=wrong[name],
        column=name,
    )


def _without_folder(column: Array) -> Array:
    if not pat.is_string(column.type):
        return column.is_null()
    texts = pc.fill_null(column, "")
    odd = pc.or_(pc.is_in(texts, value_set=_NO_FOLDERS), pc.match_substring(texts, "\0"))
    return pc.or_(odd, pc.greater(pc.binary_length(texts), MAX_FOLDER_BYTES))
