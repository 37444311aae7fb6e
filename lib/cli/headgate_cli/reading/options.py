"""How a file is read: what the user says of it. All of it changes rows, so all of it belongs to a load's identity."""

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What is said of a file; an empty value means: found, or not needed.

    ``delimiter``, ``quote``, ``escape``, ``header``, ``columns``, ``skip_lines``: of CSV. ``columns`` are the names of a file
    without a header; ``header`` says that the first line has names even where it looks like values. ``nulls``: texts without
    quotes that mean null. ``decimal``, ``thousands``: marks in numbers. ``true_words``, ``false_words``: beside true and false.
    ``date_format``, ``timestamp_format``: for strptime. ``timezone``: of times without a zone. ``casts``: columns and the types
    they are read as. ``binary``: what a text is in a column of bytes, hex or utf-8. ``sample_rows``: rows from which types are
    inferred, 0 for all. ``renames``: pairs of a column's name in the file and in the table; all else here has the file's names.
    ``select``: the columns that are loaded, in this order; empty for all. ``sql``: a SELECT of DuckDB's from ``input``, with
    ``sql_memory_mb`` MiB. ``skip_bad``: whether rows that cannot be read or do not fit are left out, ``max_errors`` of a file,
    and written to ``reject_file``. ``files``: all that are loaded together; the types of columns in the names of their folders
    fit all of them.
    """

    delimiter: str = ""
    quote: str = '"'
    escape: str = ""
    header: bool = False
    columns: tuple[str, ...] = ()
    skip_lines: int = 0
    encoding: str = ""
    nulls: tuple[str, ...] = ("",)
    decimal: str = "."
    thousands: str = ""
    true_words: tuple[str, ...] = ()
    false_words: tuple[str, ...] = ()
    date_format: str = ""
    timestamp_format: str = ""
    timezone: str = ""
    binary: str = ""
    casts: tuple[tuple[str, pa.DataType], ...] = ()
    sample_rows: int = 0
    renames: tuple[tuple[str, str], ...] = ()
    select: tuple[str, ...] = ()
    sql: str = ""
    sql_memory_mb: int = 1024
    skip_bad: bool = False
    max_errors: int = 1000
    reject_file: str = ""
    files: tuple[Path, ...] = ()

    def identity(self) -> str:
        """A text that differs where rows may differ. The sample chooses types of a new table, never rows.

        With ``sql``, another version of DuckDB or other memory may give the rows in another order.
        """
        fields = [name for name in self.__slots__ if name not in _SAME_ROWS and getattr(self, name) != getattr(_PLAIN, name)]
        engine = [("duckdb", version("duckdb")), ("memory", str(self.sql_memory_mb))] if self.sql else []
        return repr([*((name, str(getattr(self, name))) for name in fields), *engine])


_SAME_ROWS = ("sample_rows", "sql_memory_mb", "max_errors", "reject_file", "files")
_PLAIN = ReadOptions()
