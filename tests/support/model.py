"""What a table must hold, kept in a dictionary: Hudi's two merge modes, one row at a time, written from the rules alone.

Rules DE1, DE2, DE4 and fact HF3: a record is (partition, key). With an ordering column the larger value
wins and a tie goes to what came later; a delete obeys that like a row, and is remembered, so that it holds back older rows.
Without one the later entry wins. What is "later" goes by the transactions' order of beginning, then calls, then rows.
"""

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Row = dict[str, Any]
Identity = tuple[Any, ...]


@dataclass(frozen=True)
class Change:
    """One call: rows to upsert, or the keys (with partition and ordering) to delete."""

    kind: Literal["upsert", "delete"]
    rows: Sequence[Row]


@dataclass
class Model:
    """The live rows and remembered deletes of one table. ``key``, ``partition``, ``ordering``: names of columns."""

    key: Sequence[str]
    partition: Sequence[str] = ()
    ordering: str | None = None
    _standing: dict[Identity, tuple[Any, Row | None]] = field(default_factory=dict)

    def after(self, changes: Iterable[Change]) -> "Model":
        """This model with one more transaction; itself it stays as it is."""
        standing = dict(self._standing)
        for change in changes:
            for row in change.rows:
                identity = self.identity(row)
                rank = rank_of(row[self.ordering]) if self.ordering else 0
                if identity not in standing or rank >= standing[identity][0]:
                    standing[identity] = (rank, row if change.kind == "upsert" else None)
        return Model(self.key, self.partition, self.ordering, standing)

    def compacted(self) -> "Model":
        """This model once all its logs are compacted: deletes are forgotten, as by Hudi, and hold nothing back any more."""
        standing = {identity: found for identity, found in self._standing.items() if found[1] is not None}
        return Model(self.key, self.partition, self.ordering, standing)

    def rows(self) -> list[Row]:
        """The live rows, in no order that means anything."""
        return [row for _, row in self._standing.values() if row is not None]

    def identity(self, row: Row) -> Identity:
        """What makes two rows versions of one record."""
        return tuple(row[name] for name in (*self.partition, *self.key))


def rank_of(value: Any) -> Any:
    """Something that compares as the value orders: floats as Java's Double.compareTo (-0.0 below 0.0, NaN above all)."""
    if isinstance(value, float):
        bits: int = struct.unpack(">q", struct.pack(">d", math.nan if math.isnan(value) else value))[0]
        return bits if bits >= 0 else bits ^ 0x7FFF_FFFF_FFFF_FFFF
    return value
