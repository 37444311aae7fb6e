"""A log file's bytes: blocks of rows and of deletes, in the order in which they take effect (Hudi: HoodieLogFormatWriter)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from headgate_tables.arrow import Array
from headgate_tables.hudi.log import deletes, parquet_rows
from headgate_tables.hudi.log.block import BlockBytes, BlockKind, HeaderKey, checksum, encode_block
from headgate_tables.hudi.log.parquet_rows import ParquetLayout

_AVRO_VERSION = 3
Deleted: TypeAlias = tuple[Array, str, Array | None]
"""Record keys string[n], the partition path they share, and their ordering values [n] or None (see ``deletes.encode``)."""


@dataclass(frozen=True, slots=True)
class AvroRows:
    """The rows of a block as ``avro_encode`` makes them: how many, and their bytes."""

    count: int
    rows: pa.Buffer


def encode_log_file(
    instant: str, schema_json: str, blocks: Sequence[pa.Table | Deleted | AvroRows], layout: ParquetLayout
) -> Sequence[BlockBytes]:
    """The file in pieces, to be written one after the other; no copy is made of the whole.

    ``blocks``: rows as ``attach_meta`` makes them or in Avro, or deletes; of equal ordering values a later block's wins.
    ``schema_json``: Avro, meta columns included (Hudi reads it from every block's header).
    """
    headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema_json}
    pieces: list[BlockBytes] = []
    for content in blocks:
        if isinstance(content, pa.Table):
            pieces += encode_block(BlockKind.PARQUET_DATA, headers, [parquet_rows.encode(content, layout)])
        elif isinstance(content, AvroRows):
            parts: list[BlockBytes] = [struct.pack(">ii", _AVRO_VERSION, content.count), content.rows]
            pieces += encode_block(BlockKind.AVRO_DATA, headers | {HeaderKey.BLOCK_IDENTIFIER: checksum(headers, parts)}, parts)
        else:
            pieces += encode_block(BlockKind.DELETE, headers, [deletes.encode(*content)])
    return pieces
