"""A log file's bytes: blocks of rows and of deletes, in the order in which they take effect (Hudi: HoodieLogFormatWriter)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from headgate_tables.arrow import Array
from headgate_tables.hudi.log import deletes, parquet_rows
from headgate_tables.hudi.log.block import BlockBytes, BlockKind, HeaderKey, encode_block
from headgate_tables.hudi.log.parquet_rows import ParquetLayout

Deleted: TypeAlias = tuple[Array, str, Array | None]
"""Record keys string[n], the partition path they share, and their ordering values [n] or None (see ``deletes.encode``)."""


def encode_log_file(
    instant: str, schema_json: str, blocks: Sequence[pa.Table | Deleted], layout: ParquetLayout
) -> Sequence[BlockBytes]:
    """The file in pieces, to be written one after the other; no copy is made of the whole.

    ``blocks``: rows as ``attach_meta`` makes them, or deletes; of equal ordering values a later block's wins.
    ``schema_json``: Avro, meta columns included (Hudi reads it from every block's header).
    """
    headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema_json}
    pieces: list[BlockBytes] = []
    for content in blocks:
        if isinstance(content, pa.Table):
            pieces += encode_block(BlockKind.PARQUET_DATA, headers, [parquet_rows.encode(content, layout)])
        else:
            pieces += encode_block(BlockKind.DELETE, headers, [deletes.encode(*content)])
    return pieces
