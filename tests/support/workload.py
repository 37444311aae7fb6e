"""What the producers of the exactly-once tests send: rows that follow from (producer, number, attempt) and nothing else.

Number n of a producer, from 1 on, is also its offset. Half of the numbers are keys that are written once. The others upsert few
hot keys again and again, write a key that a later number deletes (soon, mostly in the same flush, or much later), or, where
the order of time is the column ``ts``, delete a hot key. Keys belong to one producer. ``ts`` is unique within a producer and
mostly grows; one in eight hot rows is late. ``attempt`` counts the processes that the producer had, so that what is resent after
one died differs from what was sent before.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import pc

UPSERT, DELETE = 1, 2
SOON, LATER = 2, 4002
"""How far behind its key's upsert a delete comes."""
_LATE_BY = 150

_COLUMNS: dict[str, pa.DataType] = {
    "id": pa.string(),
    "part": pa.string(),
    "ts": pa.int64(),
    "producer": pa.string(),
    "number": pa.int64(),
    "attempt": pa.int32(),
    "note": pa.string(),
}
SCHEMA = pa.schema(_COLUMNS)
"""The table's columns; ``note`` repeats three of them, so that a row mixed up from two shows."""


@dataclass(frozen=True, slots=True)
class Workload:
    """``event_time``: the table is ordered by ``ts``; else the later write wins. Without ``deletes`` those numbers upsert.

    ``layout``: 0 names the partitions p0, p1, …; each other number gives them other names, and so their buckets other key groups.
    """

    event_time: bool = True
    deletes: bool = True
    hot_keys: int = 50
    partitions: int = 4
    layout: int = 0

    @property
    def partition_names(self) -> list[str]:
        """Key groups are a CRC, which is linear: only names that differ all over place buckets anew."""
        numbers = range(self.partitions)
        if not self.layout:
            return [f"p{number}" for number in numbers]
        return [hashlib.sha256(f"{self.layout}/{number}".encode()).hexdigest()[:12] for number in numbers]

    def rows(self, producer: str, first: int, last: int, attempt: int) -> pa.Table:
        """Numbers first..last in order: the columns of SCHEMA and ``op`` (int8: 1 upsert, 2 delete)."""
        number = np.arange(first, last + 1, dtype=np.int64)
        hot = number % 2 == 0
        soon = self.deletes & (number % 16 == 6)
        later = self.deletes & (number % 16 == 14) & (number > LATER)
        short_lived = self.deletes & (number % 8 == 4)
        hot_delete = self.event_time & self.deletes & (number % 32 == 0)
        subject = np.where(soon, number - SOON, np.where(later, number - LATER, number))
        mixed = (number * 2_654_435_761) % 2**32 // 7
        is_hot = hot & ~(soon | later | short_lived)
        kind = np.where(soon | later | short_lived, "gone", np.where(is_hot, "hot", "once"))
        subject = np.where(is_hot, mixed % self.hot_keys, subject)
        late = is_hot & (mixed % 8 == 0)
        ts = np.where(late, 2 * (number - _LATE_BY) + 1, 2 * number)
        key = _joined("-", kind, producer, subject)
        part = np.array(self.partition_names)[subject % self.partitions]
        op = np.where(soon | later | hot_delete, DELETE, UPSERT).astype(np.int8)
        columns: dict[str, Any] = {
            "id": key,
            "part": pa.array(part.tolist(), pa.string()),
            "ts": ts,
            "producer": pa.repeat(producer, len(number)),
            "number": number,
            "attempt": np.full(len(number), attempt, np.int32),
            "note": _joined("/", producer, number, attempt),
        }
        return pa.table(columns, schema=SCHEMA).append_column("op", pa.array(op))


def _joined(separator: str, *parts: Any) -> Any:
    """Strings of the parts, each an array or one value for all rows."""
    return pc.binary_join_element_wise(*(_text(part) for part in parts), separator)


def _text(part: Any) -> Any:
    if not isinstance(part, np.ndarray):
        return pa.scalar(str(part))
    return pa.array(part.tolist(), pa.string()) if part.dtype.kind == "U" else pc.cast(pa.array(part), pa.string())
