"""A producer that sends each number once, whatever becomes of its table."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

import headgate
from support.processes import READY_S
from support.readers import read_by_hudi_rs
from support.waiting import wait_until

SCHEMA = pa.schema({"id": pa.int64(), "n": pa.int64()})
_EVERY = 20
_PAUSE_S = 0.1


class NumberedProducer(threading.Thread):
    """Sends rows 1, 2, 3, … through one channel. After an error of the kind ``waits_out`` it opens the channel again, of the
    next table of ``then`` if there is one, and goes on behind the committed offset, until ``stop``.

    ``told``: the texts of these errors. ``sent`` is set whenever more rows are queryable. ``last``: of all, in the end.
    """

    def __init__(
        self, hg: headgate.Headgate, table: str, waits_out: type[headgate.HeadgateError], then: Sequence[str] = ()
    ) -> None:
        super().__init__(daemon=True)
        self._hg = hg
        self._table = table
        self._waits_out = waits_out
        self._then = list(then)
        self.told: list[str] = []
        self.sent = threading.Event()
        self.stop = threading.Event()
        self.last = 0

    def run(self) -> None:
        while not self.stop.is_set():
            try:
                self._send()
            except self._waits_out as error:
                self.told.append(str(error))
                self._table = self._then.pop(0) if self._then else self._table
                self.stop.wait(_PAUSE_S)

    def _send(self) -> None:
        with self._hg.table(self._table).channel("c") as channel:
            number = channel.committed_offset
            while not self.stop.is_set():
                number += 1
                channel.upsert([{"id": number, "n": number}])
                if number % _EVERY == 0:
                    channel.flush("queryable")
                    self.sent.set()
            channel.flush("queryable")
            self.last = number

    def wait_sent(self) -> None:
        """Until more rows are queryable."""
        self.sent.clear()
        assert self.sent.wait(READY_S), self.told[-1:]


@contextmanager
def producing(
    hg: headgate.Headgate, table: str, waits_out: type[headgate.HeadgateError], then: Sequence[str] = ()
) -> Iterator[NumberedProducer]:
    """A producer whose rows flow when the block begins, and again when it has ended."""
    producer = NumberedProducer(hg, table, waits_out, then)
    producer.start()
    producer.wait_sent()
    yield producer
    producer.wait_sent()
    producer.stop.set()
    producer.join(READY_S)
    assert producer.last, "its last flush did not return"


def owner_of(hg: headgate.Headgate, table: str) -> str:
    """The name of the coordinator that owns the table, once one does."""
    return wait_until(f"an owner of {table}", lambda: hg.status(table).tables[0].owner)


def assert_each_once(folder: Path, producer: NumberedProducer) -> None:
    """hudi-rs finds every row that the producer sent, once."""
    found = read_by_hudi_rs(folder).column("id").sort()
    assert found.to_pylist() == list(range(1, producer.last + 1))
