"""One file of the collection, and the readers that say what its rows are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pandas as pd
import pyarrow as pa

Rows = list[dict[str, Any]]


class RealFile(NamedTuple):
    """``write`` makes the file, or the folder, at a path that ends in ``name``.

    ``options``: of the load, without the table; ``rows``: its rows by another reader, by its path; or ``error``: a part of the
    error's fix, which names what helps.
    """

    name: str
    write: Callable[[Path], object]
    options: tuple[str, ...] = ()
    rows: Callable[[Path], Rows] | None = None
    error: str = ""
    key: str = "id"


def text(content: str | bytes, encoding: str = "utf-8") -> Callable[[Path], object]:
    """A file with this content."""
    return lambda path: path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))


def sql(query: str) -> Callable[[Path], Rows]:
    """Rows by DuckDB; FILE is the path."""

    def read(path: Path) -> Rows:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            found: pa.Table = connection.sql(query.replace("FILE", f"'{path}'")).to_arrow_table()
            return found.to_pylist()

    return read


def by_duckdb(options: str = "", columns: str = "*") -> Callable[[Path], Rows]:
    """Rows of a CSV by DuckDB with options of its own."""
    return sql(f"select {columns} from read_csv(FILE{', ' + options if options else ''})")


def by_pandas(change: Callable[[Any], Any] = lambda frame: frame, **options: Any) -> Callable[[Path], Rows]:
    """Rows of a CSV by pandas, with nullable types so that whole numbers stay whole."""

    def read(path: Path) -> Rows:
        frame = change(pd.read_csv(path, dtype_backend="numpy_nullable", **options))
        return pa.Table.from_pandas(frame, preserve_index=False).to_pylist()

    return read
