"""A producer of numbered rows in two partitions, whose newest durable row a test can wait for."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

import headgate
from support.processes import READY_S

_COLUMNS: dict[str, pa.DataType] = {"id": pa.string(), "part": pa.string(), "n": pa.int64()}
SCHEMA = pa.schema(_COLUMNS)
BATCH = 20


@dataclass
class Sender:
    """Sends rows 1, 2, 3, … until it is stopped, each with a key of its own; even ones go to partition a, odd ones to b."""

    channel: headgate.Channel
    sent: int = 0
    ended: bool = False
    failed: list[BaseException] = field(default_factory=list)
    moved: threading.Condition = field(default_factory=threading.Condition)

    def run(self) -> None:
        try:
            while not self.ended:
                self._send()
            self.channel.flush("queryable")
        except BaseException as error:
            self.failed.append(error)
            raise
        finally:
            with self.moved:
                self.moved.notify_all()

    def _send(self) -> None:
        numbers = range(self.sent + 1, self.sent + BATCH + 1)
        columns = {"id": [str(n) for n in numbers], "part": ["ab"[n % 2] for n in numbers], "n": list(numbers)}
        self.channel.upsert(pa.table(columns, schema=SCHEMA), offset=numbers[-1])
        self.channel.flush("durable")
        with self.moved:
            self.sent = numbers[-1]
            self.moved.notify_all()

    def wait_for_more(self) -> int:
        """Waits until rows that were sent from now on are durable; returns the number of the newest durable row at the begin."""
        with self.moved:
            mark = self.sent
            assert self.moved.wait_for(lambda: self.failed or self.sent >= mark + 3 * BATCH, timeout=4 * READY_S), "no commits"
            assert not self.failed
            return mark


@contextmanager
def sending(channel: headgate.Channel) -> Iterator[Sender]:
    """Sends on a thread until the block ends; then all rows are queryable, and the channel is closed."""
    sender = Sender(channel)
    thread = threading.Thread(target=sender.run)
    thread.start()
    try:
        yield sender
    finally:
        sender.ended = True
        thread.join()
    assert not sender.failed
    channel.close()
