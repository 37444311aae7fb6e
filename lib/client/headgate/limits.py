"""How many rows a writer takes at once."""

import pyarrow as pa

BATCH_ROWS = 1_000_000
FILLED_BYTES = 64 * 1024 * 1024
"""A writer fills the columns that deletes leave out with nulls, and takes no batch that gets more of them."""


def most_deletes(stored: pa.Schema, sent: pa.Schema) -> int:
    """Rows whose nulls in the columns that are not sent stay within a writer's limit."""
    nbytes: int = sum(pa.nulls(1, field.type).nbytes for field in stored if field.name not in sent.names)
    return max(1, min(BATCH_ROWS, FILLED_BYTES // max(1, nbytes)))
