"""Which files below a folder hold a text: in plain bytes, or in the compressed pages of Parquet, also inside of log files."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_MAGIC = b"PAR1"
"""At the beginning and the end of a Parquet file, and of a log block that is one."""


def files_holding(folder: Path, text: str) -> list[str]:
    """Their paths from the folder, hidden ones too."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [str(path.relative_to(folder)) for path in paths if text.encode() in path.read_bytes() or _is_in_rows(path, text)]


def _is_in_rows(path: Path, text: str) -> bool:
    return any(text in str(rows.to_pydict()) for rows in _parquet_in(path.read_bytes()))


def _parquet_in(content: bytes) -> Iterator[pa.Table]:
    marks = [found.start() for found in re.finditer(re.escape(_MAGIC), content)]
    for begin, end in zip(marks[::2], marks[1::2], strict=True):
        yield pq.read_table(pa.BufferReader(content[begin : end + len(_MAGIC)]))
