"""How much text a task of a load may have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from headgate_tables.arrow import Array, pc
from headgate_tables.errors import OptionError

MOST_TEXT_BYTES: Final = (1 << 31) - 2
"""Of one column. A task writes its rows from one array, whose texts Arrow finds by numbers of 32 bits."""


def check_text(pieces: Sequence[pa.RecordBatch]) -> None:
    """Raises OptionError for a column whose texts or binaries, in all rows of a task, are larger."""
    if sum(piece.nbytes for piece in pieces) <= MOST_TEXT_BYTES:
        return
    sizes: Counter[str] = Counter()
    for piece in pieces:
        for name, column in zip(piece.schema.names, piece.columns, strict=True):
            for path, texts in _texts(column, name):
                sizes[path] += pc.sum(pc.binary_length(texts)).as_py() or 0
    for path, size in sizes.items():
        if size > MOST_TEXT_BYTES:
            raise OptionError(
                f"a task of the load has more than 2 GiB of text in the column {path!r}",
                fix="Give the load more `tasks`; where each bucket has a task already, give the table more buckets.",
            )


def _texts(column: Array, path: str) -> Iterator[tuple[str, Array]]:
    if isinstance(column, pa.StructArray):
        for at, child in enumerate(column.flatten()):
            yield from _texts(child, f"{path}.{column.type.field(at).name}")
    elif isinstance(column, pa.MapArray):
        begin, end = column.offsets[0].as_py(), column.offsets[len(column)].as_py()
        yield from _texts(column.keys[begin:end], f"{path}.key")
        yield from _texts(column.items[begin:end], f"{path}.value")
    elif isinstance(column, pa.ListArray):
        yield from _texts(column.flatten(), f"{path}.element")
    elif pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        yield path, column
