"""What a table must hold, by a dictionary: the rules of Hudi's two merge modes, one row at a time, apart from the library."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Identity = tuple[Any, ...]


@dataclass(slots=True)
class Oracle:
    """Rows by (partition, key). With ``ordering`` the larger value wins, and the later one of equals; without, the later one.

    Deletes obey the same rule. One is remembered with its ordering value, so that an older row which comes later stays away.
    """

    key: Sequence[str]
    partition: Sequence[str] = ()
    ordering: str | None = None
    _newest: dict[Identity, tuple[Any, Row | None]] = field(default_factory=dict)

    def upsert(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._apply(row, row)

    def delete(self, keys: Iterable[Row]) -> None:
        for key in keys:
            self._apply(key, None)

    def compact(self) -> None:
        """All slices were: what was deleted is forgotten, and an older row that comes later is there (rule DE2)."""
        self._newest = {identity: newest for identity, newest in self._newest.items() if newest[1] is not None}

    def forget(self, *partition: Any) -> None:
        """The files of a partition, given by its values, are gone, with rows and deletes; without values, those of all."""
        self._newest = {at: newest for at, newest in self._newest.items() if at[: len(partition)] != partition}

    def rows(self) -> list[Row]:
        """The live rows, in no order that means anything."""
        return [row for _, row in self._newest.values() if row is not None]

    def _apply(self, names: Row, row: Row | None) -> None:
        identity = tuple(names[column] for column in (*self.partition, *self.key))
        rank = names[self.ordering] if self.ordering else 0
        if identity not in self._newest or rank >= self._newest[identity][0]:
            self._newest[identity] = (rank, row)
