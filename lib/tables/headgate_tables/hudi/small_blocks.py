"""Rows of log blocks as Avro: those of many blocks are encoded at once, and each block gets its stretch of the bytes.

A Parquet block costs 25 us a column and 150 bytes a column before its first row; a stretch of Avro costs neither.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from headgate_tables.arrow import Array, ChunkedArray
from headgate_tables.face.settings import BlockFormat
from headgate_tables.hudi.entries import one_array
from headgate_tables.hudi.log.avro_encode import encode_rows
from headgate_tables.hudi.log.writer import AvroRows
from headgate_tables.hudi.schema.meta_columns import attach_meta, with_meta

Counts: TypeAlias = npt.NDArray[np.int64]

AVRO_BYTES_A_COLUMN = 256
"""Up to so many bytes of Avro for each column, Hudi's included, a block is no larger than in Parquet (20 rows of 17 columns,
15 of 7, 50 of 47); above it Parquet packs better."""
FEWEST_BLOCKS = 2
"""One block alone takes as long either way."""
_LEAST_ROW = 96
"""Bytes of the meta columns of a row, at least: rows that must be too large are not even encoded."""
_AT_ONCE = 4096
"""Rows encoded at a time, about; more of them no longer lie in a core's cache."""


@dataclass(frozen=True, slots=True)
class BlockRows:
    """The upserts of one block. ``keys``, ``sequence``: as ``attach_meta`` has them. ``file_name``: the file id in a log file."""

    rows: pa.Table
    keys: Array
    sequence: ChunkedArray
    instant: str
    partition: str
    file_name: str

    def with_meta(self) -> pa.Table:
        """Rows as they are stored in Parquet."""
        return attach_meta(
            self.rows, self.keys, self.sequence, instant=self.instant, partition=self.partition, file_name=self.file_name
        )


class AvroBlocks:
    """Decides for the blocks of one table. ``schema``: its columns. ``form``, of the methods: the table's setting."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = with_meta(schema)
        self._allowed = avro_blocks_allowed(schema)
        self._most_bytes = AVRO_BYTES_A_COLUMN * len(self._schema)

    def may_be_used(self, form: BlockFormat, rows: int) -> bool:
        """Whether a block of so many rows may be Avro."""
        return self._allowed and (form == "avro" or (form == "auto" and self._may_fit(rows)))

    def encode(self, blocks: Sequence[BlockRows], form: BlockFormat) -> list[AvroRows | None]:
        """For each block its rows in Avro, or None: it is to be written in Parquet. ``blocks``: those of one commit."""
        made: list[AvroRows | None] = [None] * len(blocks)
        forced = form == "avro"
        chosen = [at for at, block in enumerate(blocks) if forced or self._may_fit(block.rows.num_rows)]
        if len(chosen) < FEWEST_BLOCKS and not forced:
            return made
        for batch in _batches(chosen, blocks):
            for at, content in zip(batch, _encoded([blocks[at] for at in batch], self._schema), strict=True):
                if forced or content.rows.size <= self._most_bytes:
                    made[at] = content
        return made

    def _may_fit(self, rows: int) -> bool:
        return rows * _LEAST_ROW <= self._most_bytes


def avro_blocks_allowed(schema: pa.Schema) -> bool:
    """Whether every reader reads these columns in Avro. hudi-rs 0.5.0 reads no timestamp in a struct
    (test_hudi_rs_reads_no_timestamp_in_a_struct_of_an_avro_block), and no list or map of a block that lacks a column
    which the table got later (test_hudi_rs_reads_no_list_or_map_of_an_avro_block_that_lacks_a_column).
    """
    return not any(_is_refused(field.type) for field in schema)


def _is_refused(kind: pa.DataType, *, in_struct: bool = False) -> bool:
    if pat.is_struct(kind):
        return any(_is_refused(kind.field(i).type, in_struct=True) for i in range(kind.num_fields))
    return pat.is_nested(kind) or (in_struct and pat.is_timestamp(kind))


def _batches(chosen: Sequence[int], blocks: Sequence[BlockRows]) -> Iterator[list[int]]:
    """Blocks to encode together."""
    batch: list[int] = []
    rows = 0
    for at in chosen:
        batch.append(at)
        rows += blocks[at].rows.num_rows
        if rows >= _AT_ONCE:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _encoded(blocks: Sequence[BlockRows], schema: pa.Schema) -> list[AvroRows]:
    counts = np.array([block.rows.num_rows for block in blocks])
    rows = pa.concat_tables([block.rows for block in blocks])
    sequence = pa.chunked_array([chunk for block in blocks for chunk in block.sequence.chunks], type=pa.string())
    columns = [
        _repeated([block.instant for block in blocks], counts),
        one_array(sequence),
        pa.concat_arrays([block.keys for block in blocks]),
        _repeated([block.partition for block in blocks], counts),
        _repeated([block.file_name for block in blocks], counts),
        *map(one_array, rows.columns),
    ]
    encoded = encode_rows(columns, schema)
    bounds = itertools.pairwise([0, *np.cumsum(counts).tolist()])
    return [AvroRows(stop - start, encoded.slice(start, stop)) for start, stop in bounds]


def _repeated(values: Sequence[str], counts: Counts) -> Array:
    """string[sum of counts]: each value so many times, as a dictionary array."""
    distinct = {value: code for code, value in enumerate(dict.fromkeys(values))}
    codes = np.repeat(np.array([distinct[value] for value in values], dtype=np.int32), counts)
    indices = pa.Array.from_buffers(pa.int32(), len(codes), [None, pa.py_buffer(codes.data)])
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(distinct), pa.string()), safe=False)
