"""Small blocks of Avro rows, read many at a time: a pass over a block costs a millisecond, however few rows it has."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from functools import partial

import pyarrow as pa

from headgate_tables.hudi.log.avro_rows import decode_together
from headgate_tables.hudi.log.block import BlockKind, HeaderKey
from headgate_tables.hudi.log.reader import DeleteBlock, RowsBlock

_SMALL_BYTES = 64 * 1024
_GROUP_BYTES = 4 * 1024 * 1024
"""Contents read in one pass. More: more memory, as what was read stays until another group is."""


def read_together(blocks: Sequence[RowsBlock | DeleteBlock]) -> list[RowsBlock | DeleteBlock]:
    """The same blocks; the small ones of Avro rows are decoded with those of the same schema next to them."""
    groups = _Groups()
    return [groups.with_others(block) if isinstance(block, RowsBlock) and _is_small(block) else block for block in blocks]


def _is_small(block: RowsBlock) -> bool:
    return block.block.kind is BlockKind.AVRO_DATA and 0 < block.block.content.size <= _SMALL_BYTES


class _Groups:
    """The groups of one slice. What was decoded last is kept: a reader that goes through the blocks in order decodes each group
    once.
    """

    def __init__(self) -> None:
        self._contents: list[list[pa.Buffer]] = []
        self._schema = ""
        self._bytes = 0
        self._decoded: tuple[int, Collection[str] | None, list[pa.Table] | None] | None = None

    def with_others(self, block: RowsBlock) -> RowsBlock:
        schema, size = block.block.headers.get(HeaderKey.SCHEMA, ""), block.block.content.size
        if not self._contents or schema != self._schema or self._bytes + size > _GROUP_BYTES:
            self._contents.append([])
            self._schema, self._bytes = schema, 0
        self._contents[-1].append(block.block.content)
        self._bytes += size
        group, number = len(self._contents) - 1, len(self._contents[-1]) - 1
        return dataclasses.replace(block, together=partial(self._read, group, number, schema))

    def _read(self, group: int, number: int, schema: str, columns: Collection[str] | None) -> pa.Table | None:
        contents = self._contents[group]
        if len(contents) < 2:
            return None
        wanted = None if columns is None else frozenset(columns)
        decoded = self._decoded
        if decoded is None or decoded[:2] != (group, wanted):
            decoded = self._decoded = group, wanted, decode_together(contents, schema, wanted)
        return decoded[2][number] if decoded[2] is not None else None
