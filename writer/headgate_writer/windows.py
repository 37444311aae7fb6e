"""The windows at both ends of an exchange stream: frames sent, frames received, bytes on the way (EX1, EX2, EX4). Pure."""

from collections import Counter, deque
from typing import Final

from headgate_proto.cluster.v1 import exchange_pb2 as wire

WINDOW_BYTES: Final = 8 << 20
"""Bytes under way on one stream. Lower: a sender waits for its receiver more often; higher: so much more memory at both ends."""


class ExchangeError(Exception):
    """Frames are lost or out of order. The stream cannot go on, and the checkpoint has to abort."""


class SendWindow:
    """The frames of one stream that its receiver has not acknowledged. All are kept until then."""

    def __init__(self) -> None:
        self._frames: deque[tuple[wire.Frame, int]] = deque()
        self._last = 0
        self._sent = 0
        self._credit = 0
        self._rows: Counter[int] = Counter()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def acknowledged(self) -> int:
        """Number of the last frame that has arrived."""
        return self._last

    def append_rows(self, checkpoint: int, rows: wire.Rows) -> int:
        """Appends a frame of rows. Returns the bytes that it counts."""
        self._rows[checkpoint] += 1
        nbytes = len(rows.batch)
        self._put(wire.Frame(number=self._last + len(self) + 1, checkpoint=checkpoint, rows=rows), nbytes)
        return nbytes

    def append_barrier(self, checkpoint: int) -> None:
        """Appends the barrier of the checkpoint, with the number of its frames of rows."""
        self._put(wire.Frame(number=self._last + len(self) + 1, checkpoint=checkpoint, barrier=self._rows.pop(checkpoint, 0)), 0)

    def next_frame(self) -> wire.Frame | None:
        """Returns the next frame to send, None without a frame or credit. A frame larger than the credit goes alone."""
        at = self._sent - self._last
        if at >= len(self._frames):
            return None
        frame, nbytes = self._frames[at]
        under_way = sum(self._frames[i][1] for i in range(at))
        if nbytes and under_way + nbytes > self._credit and (under_way or not self._credit):
            return None
        self._sent += 1
        return frame

    def acknowledge(self, last: int, credit: int) -> int:
        """Drops frames up to ``last``, which have arrived, and allows ``credit`` bytes on the way. Returns the bytes dropped.

        Raises ExchangeError when ``last`` was never sent, or is older than an earlier acknowledgement.
        """
        if not self._last <= last <= self._last + len(self._frames):
            raise ExchangeError(f"the receiver has frame {last}; it had {self._last}, and {len(self._frames)} more were sent")
        forgotten = sum(self._frames.popleft()[1] for _ in range(last - self._last))
        self.nbytes -= forgotten
        self._last = last
        self._sent = max(self._sent, last)
        self._credit = credit
        return forgotten

    def resume(self, last: int) -> int:
        """As ``acknowledge``, on a new connection: frames behind ``last`` are sent again once there is credit."""
        forgotten = self.acknowledge(last, 0)
        self._sent = last
        return forgotten

    def _put(self, frame: wire.Frame, nbytes: int) -> None:
        self._frames.append((frame, nbytes))
        self.nbytes += nbytes


class ReceiveWindow:
    """The frames that have arrived from one sender in one (epoch, generation)."""

    def __init__(self) -> None:
        self.last = 0
        self._rows: Counter[int] = Counter()

    def is_new(self, frame: wire.Frame) -> bool:
        """Returns False for a frame that has arrived before. Raises ExchangeError when one before it is missing."""
        if frame.number > self.last + 1:
            raise ExchangeError(f"frame {frame.number} came behind frame {self.last}")
        return frame.number == self.last + 1

    def count_rows(self, frame: wire.Frame) -> None:
        """Counts a new frame of rows."""
        self.last = frame.number
        self._rows[frame.checkpoint] += 1

    def check_barrier(self, frame: wire.Frame) -> None:
        """Takes a new barrier. Raises ExchangeError when it counts other frames than have arrived (rule EX2)."""
        self.last = frame.number
        found = self._rows.pop(frame.checkpoint, 0)
        if found != frame.barrier:
            raise ExchangeError(
                f"{found} frames of checkpoint {frame.checkpoint} came before its barrier, which counts {frame.barrier}"
            )
