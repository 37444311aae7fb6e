"""How many rows a second became queryable, over the last checkpoints. Pure."""

from collections import deque
from dataclasses import dataclass
from typing import Final

SPAN_S: Final = 60.0
"""Of the mean. Where one checkpoint takes longer, the last one counts for as long as it took."""


@dataclass(frozen=True, slots=True)
class _Published:
    rows: int
    began: float
    at: float


class RowRate:
    """Times are monotonic seconds."""

    def __init__(self) -> None:
        self._published: deque[_Published] = deque()

    def note_published(self, rows: int, began: float, now: float) -> None:
        """Readers see a checkpoint. ``began``: when its first rows came."""
        self._published.append(_Published(rows, began, now))
        self._forget(now)

    def per_second(self, now: float) -> float:
        """The mean since the first rows came of the checkpoints that count now; 0 when there are none."""
        self._forget(now)
        if not self._published:
            return 0.0
        took = now - min(each.began for each in self._published)
        return sum(each.rows for each in self._published) / took if took > 0 else 0.0

    def _forget(self, now: float) -> None:
        while self._published and (oldest := self._published[0]).at < now - max(SPAN_S, oldest.at - oldest.began):
            self._published.popleft()
