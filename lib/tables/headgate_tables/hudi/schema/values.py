"""Values that are none of their type: text that is not UTF-8, decimals with more digits.

Parquet files hold such, and casts make them; Arrow takes both without a look. Stored, text of that sort makes a file that no
reader takes, and a decimal becomes another number.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from headgate_tables.arrow import Array
from headgate_tables.errors import SchemaError


def check_values(rows: pa.Table) -> None:
    """Raises SchemaError for a column with such a value, at any depth. Costs a look at each text, list and decimal."""
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if _is_sure(field.type):
            continue
        for chunk in column.chunks:
            try:
                chunk.validate()
                if not _is_ascii(chunk):
                    chunk.validate(full=True)
            except pa.ArrowInvalid as error:
                raise SchemaError(
                    f"Column {field.name!r} has a value that is no {field.type}: {error}",
                    fix="Correct it: encode texts as UTF-8, and give decimals the digits of their type.",
                ) from error


def _is_ascii(texts: Array) -> bool:
    """Whether all are texts in ASCII, without a look at each: a tenth of the cost. ``texts``: validated, but not in full."""
    if not pat.is_string(texts.type) or not len(texts):
        return False
    _, offset_buffer, text_buffer = texts.buffers()
    if offset_buffer is None or text_buffer is None:
        return False
    offsets = np.frombuffer(memoryview(offset_buffer), np.int32, len(texts) + 1, texts.offset * 4)
    shown = np.frombuffer(memoryview(text_buffer), np.uint8)[offsets[0] : offsets[-1]]
    return bool((offsets[1:] >= offsets[:-1]).all()) and bool(shown.max(initial=0) < 128)


def _is_sure(kind: pa.DataType) -> bool:
    """Whether all bytes are values of this type."""
    return pat.is_integer(kind) or pat.is_floating(kind) or pat.is_boolean(kind) or pat.is_temporal(kind)
