"""Three producers, one for each airport: each sends its events through the SDK, first at a pace, then as fast as it can."""

import threading
import time

import pyarrow as pa

import headgate
from demo.feed import OPERATION, Feed

TABLE = "flights"
_PACED_ROWS, _FAST_ROWS = 500, 4_000


class Producer(threading.Thread):
    """Sends ``feed``. ``rate``: events a second until ``hurry`` is set; ``failure``: the error that ended it."""

    def __init__(self, address: str, feed: Feed, rate: float, hurry: threading.Event) -> None:
        super().__init__(name=f"producer-{feed.origin}", daemon=True)
        self.feed = feed
        self.sent: list[tuple[float, int]] = []
        """(moment, offset of the last row) of each batch given to the SDK."""
        self.failure: BaseException | None = None
        self.channel: headgate.Channel | None = None
        self._address = address
        self._rate = rate
        self._hurry = hurry

    @property
    def queryable(self) -> int:
        """The number of events that readers see."""
        return int(self.channel.acks.queryable) if self.channel is not None else 0

    def run(self) -> None:
        try:
            self._send_all()
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self.failure = error

    def _send_all(self) -> None:
        with (
            headgate.connect(self._address, wait=60) as cluster,
            cluster.table(TABLE).channel(f"airport-{self.feed.origin}") as channel,
        ):
            self.channel = channel
            began, at = time.monotonic(), 0
            rows = self.feed.events
            while at < rows.num_rows:
                if not self._hurry.is_set():
                    self._hurry.wait(max(0.0, began + at / self._rate - time.monotonic()))
                batch = rows.slice(at, _FAST_ROWS if self._hurry.is_set() else _PACED_ROWS)
                at += batch.num_rows
                self.sent.append((time.monotonic(), at))
                self._send(channel, batch, at)
            channel.flush("queryable")

    @staticmethod
    def _send(channel: headgate.Channel, batch: pa.Table, offset: int) -> None:
        channel.write(batch.to_batches()[0], operation_column=OPERATION, offset=offset)
