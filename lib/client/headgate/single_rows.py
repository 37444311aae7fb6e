"""Rows of calls with one row each, which wait to become one record batch."""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from headgate.answers import MAX_OFFSET
from headgate.channel_state import ChannelState
from headgate.encoding import concat_batches, decoded
from headgate.row_reader import RowValues, Values
from headgate.rows import RowFormat
from headgate_proto.limits import VALUE_BYTES

SINGLE_ROW_SECONDS = 0.005
"""So long a row waits for others. It is little beside the time to a commit, and at 100 k rows/s makes 500 of them one message."""
MESSAGE_SECONDS = 0.001
"""So much later than those of another channel of the connection the rows of a channel become a message: each costs the CPU of ten
rows or more, and with a hundred channels it would have two or three rows."""
LONGEST_SECONDS = 0.1
"""But no row waits longer, with however many channels."""
MOST_ROWS = 2_048
MOST_BYTES = 512 * 1024
"""Converting so many takes some milliseconds, for which the event loop may have to wait."""
MOST_ARROW_BYTES = VALUE_BYTES // 8
"""Of a row of Arrow data, for which limits are not looked at: no value in it can be above them (limits.py)."""
_JOINED = 32
"""Rows of Arrow data are copied one behind the other, and all again with each. Higher: more bytes are copied; lower: more batches
are left to be joined."""


class Pace:
    """When the single rows of a connection's channels become messages."""

    def __init__(self) -> None:
        self._next = 0.0

    def delay(self, now: float) -> float:
        """Seconds until those of one more channel do, whose first row has come. ``now``: of a clock in seconds."""
        at = min(max(now + SINGLE_ROW_SECONDS, self._next), now + LONGEST_SECONDS)
        self._next = at + MESSAGE_SECONDS
        return at - now


class Waited(NamedTuple):
    """Rows that waited, in the order of their calls, of Python or of Arrow. ``offsets``: one each."""

    row_format: RowFormat
    offsets: Sequence[int]
    rows: Sequence[Values]
    batches: Sequence[pa.RecordBatch]

    def batch(self) -> pa.RecordBatch:
        """All of them."""
        if not self.batches:
            return self.row_format.reader.batch(self.rows, self.row_format.schema)
        return self.batches[0] if len(self.batches) == 1 else concat_batches(self.batches)


class SingleRows:
    """Rows of one format, either all of Python (``form``: tuple) or all of Arrow, in the order of their calls. ``offsets``: one
    each. ``size``: their bytes in Arrow, as far as they are known before.
    """

    __slots__ = ("_batches", "_last", "_last_bytes", "_rows", "form", "offsets", "row_format", "size")

    def __init__(self) -> None:
        self.row_format: RowFormat | None = None
        self.form: type = tuple
        self.offsets: list[int] = []
        self.size = 0
        self._rows: list[Values] = []
        self._batches: list[pa.RecordBatch] = []
        self._last: pa.RecordBatch | None = None
        self._last_bytes = 0

    def offset(self, before: int) -> int:
        """The offset of the last row. ``before``: that of the last row before these."""
        return self.offsets[-1] if self.offsets else before

    def append(self, row: RowValues | pa.RecordBatch, offset: int | None, state: ChannelState) -> int | None:
        """Returns the row's offset; None when it is none that can follow, or there is no room, or the row is large. ``row``: of
        ``form``.
        """
        offsets = self.offsets
        last = offsets[-1] if offsets else state.last_offset
        taken = last + 1 if offset is None else offset
        if type(taken) is not int or not last < taken <= MAX_OFFSET:
            return None
        values, size = row if isinstance(row, tuple) else self._joined(row)
        together = self.size + size
        if (offsets or state.bytes_in_flight) and state.bytes_in_flight + together > state.limit:
            return None
        if isinstance(values, tuple):
            self._rows.append(values)
        elif size > MOST_ARROW_BYTES:
            return None
        else:
            self._keep(values, size)
        offsets.append(taken)
        self.size = together
        return taken

    def waiting(self) -> Waited | None:
        """What waits, and goes on waiting until ``clear``; None when nothing does."""
        row_format, offsets = self.row_format, self.offsets
        if row_format is None or not offsets:
            return None
        counted = offsets[-1] - offsets[0] == len(offsets) - 1
        batches = self._batches if self._last is None else [*self._batches, self._last]
        return Waited(row_format, range(offsets[0], offsets[-1] + 1) if counted else offsets, self._rows, batches)

    def clear(self) -> None:
        """Leaves nothing waiting, and what ``waiting`` returned as it is."""
        self.offsets, self.size, self._rows, self._batches, self._last, self._last_bytes = [], 0, [], [], None, 0

    def _joined(self, row: pa.RecordBatch) -> tuple[pa.RecordBatch, int]:
        """The last batch with the row, and the row's bytes. It is a copy: the program may change what it gave."""
        last = self._last
        joined = decoded(row.serialize().to_pybytes(), row.schema) if last is None else concat_batches([last, row])
        return joined, joined.get_total_buffer_size() - self._last_bytes

    def _keep(self, last: pa.RecordBatch, size: int) -> None:
        if last.num_rows < _JOINED:
            self._last, self._last_bytes = last, self._last_bytes + size
        else:
            self._batches.append(last)
            self._last, self._last_bytes = None, 0
