"""A log file's bytes: one block of rows, one of deletes, in the order that Hudi's append handle writes them (§4.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from headgate_tables.hudi.log import deletes, parquet_rows
from headgate_tables.hudi.log.block import BlockKind, HeaderKey, Piece, encode_block
from headgate_tables.hudi.log.parquet_rows import ParquetLayout

Deleted: TypeAlias = "tuple[pa.Array[Any], str, pa.Array[Any] | None]"
"""Record keys string[n], the partition path they share, and their ordering values [n] or None (see ``deletes.encode``)."""


def encode_log_file(
    instant: str, schema_json: str, rows: pa.Table | None, layout: ParquetLayout, deleted: Deleted | None
) -> Sequence[Piece]:
    """The file in pieces, to be written one after the other; nothing of the rows is copied into one.

    ``rows``: as ``attach_meta`` makes them, deletes win over rows of equal ordering value because they come later.
    ``schema_json``: Avro, meta columns included (Hudi reads it from every block's header).
    """
    headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema_json}
    pieces: list[Piece] = []
    if rows is not None:
        pieces += encode_block(BlockKind.PARQUET_DATA, headers, [parquet_rows.encode(rows, layout)])
    if deleted is not None:
        pieces += encode_block(BlockKind.DELETE, headers, [deletes.encode(*deleted)])
    return pieces
