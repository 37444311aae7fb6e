"""Rows of calls with one row each, which wait to become one record batch."""

from collections.abc import Sequence

from headgate.answers import MAX_OFFSET
from headgate.channel_state import ChannelState
from headgate.row_reader import RowValues, Values
from headgate.rows import RowFormat

SINGLE_ROW_SECONDS = 0.005
"""So long a row waits for others. It is little beside the time to a commit, and at 100 k rows/s makes 500 of them one message."""
MOST_ROWS = 2_048
MOST_BYTES = 512 * 1024
"""Converting so many takes some milliseconds, for which the event loop may have to wait."""


class SingleRows:
    """Rows of one format in the order of their calls. ``size``: their bytes in Arrow, as far as they are known before."""

    __slots__ = ("_offsets", "row_format", "rows", "size")

    def __init__(self) -> None:
        self.row_format: RowFormat | None = None
        self.rows: list[Values] = []
        self.size = 0
        self._offsets: list[int] = []

    def offset(self, before: int) -> int:
        """The offset of the last row. ``before``: that of the last row before these."""
        return self._offsets[-1] if self._offsets else before

    def append(self, row: RowValues, offset: int | None, state: ChannelState) -> int | None:
        """Returns the row's offset; None when it is none that can follow, or there is no room."""
        values, size = row
        size += self.size
        offsets = self._offsets
        last = offsets[-1] if offsets else state.last_offset
        taken = last + 1 if offset is None else offset
        if type(taken) is not int or not last < taken <= MAX_OFFSET:
            return None
        if (offsets or state.bytes_in_flight) and state.bytes_in_flight + size > state.limit:
            return None
        self.rows.append(values)
        offsets.append(taken)
        self.size = size
        return taken

    def take(self) -> tuple[RowFormat | None, Sequence[Values], Sequence[int]]:
        """Format, rows and offsets; no row is left."""
        rows, offsets = self.rows, self._offsets
        if not rows:
            return self.row_format, (), ()
        self.rows, self._offsets, self.size = [], [], 0
        counted = offsets[-1] - offsets[0] == len(offsets) - 1
        return self.row_format, rows, range(offsets[0], offsets[-1] + 1) if counted else offsets
