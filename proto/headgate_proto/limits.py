"""How much a writer takes at once, for writers, which refuse more, and for clients, which cut their batches to it.

``ingest.proto`` says the same to clients in other languages. A higher limit has to be in all writers before clients use it.
"""

from typing import Final

BATCH_WIRE_BYTES: Final = 8 << 20
"""Of the record batch message of one batch."""
BATCH_BYTES: Final = 64 << 20
"""Of a batch's rows, uncompressed."""
COMPRESSION_RATIO: Final = 100
"""So many times the bytes on the wire may the rows have: more is taken for a bomb."""
BATCH_ROWS: Final = 1_000_000
BATCH_PARTITIONS: Final = 1_024
"""Distinct partitions of one batch: each makes a folder, and files in every checkpoint."""
FILLED_BYTES: Final = 64 << 20
"""Arrow bytes of the nulls that a batch gets where it leaves out columns; as much as its rows may have themselves."""
ROW_BYTES: Final = 4 << 20
"""Arrow bytes of one row as it is stored, validity left out. It crosses between writers in one message, of at most 9 MiB."""
VALUE_BYTES: Final = 1 << 20
"""Arrow bytes of one column's value in one row, its offset included."""
