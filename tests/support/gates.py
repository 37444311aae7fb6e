"""A producer of rows with a column ``gate`` that older rows lack, and what readers have to see in it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import headgate
from support.journal import Attempt, History
from support.processes import READY_S
from support.readers import read_by_hudi_rs
from support.workload import Workload


class GateSender(threading.Thread):
    """A producer of rows with the new column ``gate``, which says in each row what ``note`` says."""

    def __init__(self, address: str, name: str, workload: Workload) -> None:
        super().__init__(name=name, daemon=True)
        self._address = address
        self._workload = workload
        self.history = History(name)
        self.stop = threading.Event()
        self.failure: headgate.HeadgateError | None = None
        self._acked = threading.Condition()

    def run(self) -> None:
        try:
            with headgate.connect(self._address, wait=READY_S) as hg, hg.table("t").channel(self.name) as channel:
                self.history.attempts.append(attempt := Attempt(1, 0, 0))
                while not self.stop.is_set():
                    first, attempt.sent = attempt.sent + 1, attempt.sent + 50
                    rows = self._workload.rows(self.name, first, attempt.sent, 1)
                    channel.write(rows.append_column("gate", rows["note"]), offset=attempt.sent)
                    channel.flush("durable")
                    with self._acked:
                        self.history.acked = channel.committed_offset
                        self._acked.notify_all()
        except headgate.HeadgateError as error:
            self.failure = error

    def wait_acked(self, number: int) -> None:
        with self._acked:
            assert self._acked.wait_for(lambda: self.history.acked >= number, timeout=READY_S), self.failure


@contextmanager
def gate_sender(address: str, name: str, workload: Workload) -> Iterator[GateSender]:
    sender = GateSender(address, name, workload)
    sender.start()
    try:
        yield sender
    finally:
        sender.stop.set()
        sender.join(READY_S)
    assert not sender.is_alive()
    assert sender.failure is None


def assert_gates(url: str, *senders: GateSender) -> None:
    """hudi-rs shows in ``gate`` what the senders sent, and null in all other rows."""
    names = {sender.history.producer for sender in senders}
    found = read_by_hudi_rs(Path(url.removeprefix("file://"))).select(["producer", "note", "gate"]).to_pylist()
    assert {row["producer"] for row in found} >= names
    wrong = [row for row in found if row["gate"] != (row["note"] if row["producer"] in names else None)]
    assert not wrong, wrong[:5]
