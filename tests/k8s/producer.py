"""A producer in a pod: ``python -m k8s.producer``, with its settings in the environment. Needs the image's libraries alone.

It sends numbered rows until it is asked to finish, and notes every error that the SDK raises. After an error it opens the channel
again, as a program would, under a new attempt. A changed token or authority is taken up with a new connection.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import headgate
from headgate_tables.storage.open import open_store
from headgate_tables.system import SystemIds
from k8s.notes import Attempt, Notes
from support.workload import SCHEMA, Workload

RESERVE = 2000
"""Rows that are noted as sent at once."""
NOTE_EACH_S = 1.0
PAUSE_S = 0.2
"""After an error, before the channel is opened again."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What all producers of a table send. ``rate``: rows a second, of each; ``batch``: rows a call."""

    table: str
    address: str
    notes: str
    rate: float
    batch: int
    buckets: int
    partitions: int


@dataclass(frozen=True, slots=True)
class Told(Stream):
    """One producer of the stream. ``token``, ``ca``: files, which may change; "" for none."""

    name: str
    token: str
    ca: str
    pod: str

    @classmethod
    def from_environment(cls) -> "Told":
        kinds: dict[str, Callable[[str], object]] = {"rate": float, "batch": int, "buckets": int, "partitions": int}
        named = {each.name: os.environ.get(f"PRODUCER_{each.name.upper()}", "") for each in fields(cls)}
        return cls(**{name: kinds.get(name, str)(value) for name, value in named.items()})  # type: ignore[arg-type]

    def credentials(self) -> tuple[str, str]:
        return tuple(Path(path).read_text(encoding="utf-8") if path else "" for path in (self.token, self.ca))  # type: ignore[return-value]

    def connect(self) -> headgate.Headgate:
        token, _ = self.credentials()
        tls = headgate.Tls(ca=self.ca) if self.ca else None
        return headgate.connect(self.address, token=token.strip() or None, tls=tls, wait=60)


class Producer:
    """``ended``: set by a signal; the pod goes away, and another process goes on."""

    def __init__(self, told: Told, ended: threading.Event) -> None:
        self._told = told
        self._ended = ended
        self._notes = Notes(open_store(told.notes, None, SystemIds()))
        self._workload = Workload(partitions=told.partitions)
        self._finishing = False

    def run(self) -> None:
        while not (self._ended.is_set() or self._finishing):
            attempt = self._notes.claim(self._told.name, self._told.pod)
            try:
                self._send(attempt)
            except headgate.ChannelTakenOverError:
                attempt.superseded = True
                self._ended.set()
            except headgate.HeadgateError as error:
                attempt.failures.append(f"{time.strftime('%H:%M:%S')} {type(error).__name__}: {error}")
                print(attempt.failures[-1], flush=True)
                self._ended.wait(PAUSE_S)
            self._notes.note(attempt)

    def _send(self, attempt: Attempt) -> None:
        """One channel, from the committed offset until the end, an error or other credentials."""
        told, credentials = self._told, self._told.credentials()
        with told.connect() as hg:
            table = hg.create_table(
                told.table, SCHEMA, key="id", partition_by="part", ordering="ts", buckets=told.buckets, exist_ok=True
            )
            with table.channel(told.name) as channel:
                self._opened(attempt, channel.committed_offset)
                begin, noted, last = time.monotonic(), time.monotonic(), attempt.committed
                while not (self._ended.is_set() or self._finishing) and credentials == told.credentials():
                    first, last = last + 1, last + told.batch
                    self._reserve(attempt, last)
                    rows = self._workload.rows(told.name, first, last, attempt.number)
                    _timed(attempt, lambda rows=rows, last=last: channel.write(rows, offset=last))  # type: ignore[misc]
                    if time.monotonic() - noted > NOTE_EACH_S:
                        noted = time.monotonic()
                        self._look(attempt, channel)
                    self._ended.wait(max(0.0, begin + (last - attempt.committed) / told.rate - time.monotonic()))
                attempt.sent = last
                _timed(attempt, lambda: channel.flush("queryable"))
                attempt.acked = channel.acks.queryable
            attempt.ended = True

    def _opened(self, attempt: Attempt, committed: int) -> None:
        attempt.committed = attempt.sent = attempt.acked = committed
        self._notes.note(attempt)
        print(f"attempt {attempt.number} at {committed}", flush=True)

    def _reserve(self, attempt: Attempt, last: int) -> None:
        if last > attempt.sent:
            attempt.sent = last + RESERVE
            self._notes.note(attempt)

    def _look(self, attempt: Attempt, channel: headgate.Channel) -> None:
        attempt.acked = max(attempt.acked, channel.acks.durable)
        self._finishing = self._notes.should_finish
        self._notes.note(attempt)


def _timed(attempt: Attempt, call: Callable[[], object]) -> None:
    begin = time.monotonic()
    try:
        call()
    finally:
        attempt.calls += 1
        attempt.slowest = max(attempt.slowest, time.monotonic() - begin)


def main() -> None:
    told, ended = Told.from_environment(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    Producer(told, ended).run()
    print("done", flush=True)
    ended.wait()  # a Deployment would start it again


if __name__ == "__main__":
    main()
