"""How much text a task of a load may have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from headgate_spark.nested import leaves
from headgate_tables.arrow import pc
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
            for path, values in leaves(column, name):
                if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
                    sizes[path] += pc.sum(pc.binary_length(values)).as_py() or 0
    for path, size in sizes.items():
        if size > MOST_TEXT_BYTES:
            raise OptionError(
                f"a task of the load has more than 2 GiB of text in the column {path!r}",
                fix="Give the load more `tasks`; where each bucket has a task already, give the table more buckets.",
            )
