"""Producers as processes: ``python -m support.producers --address A --table T --name N --journal FILE --rows 5000``.

A producer that is started again goes on behind what is committed, as a new attempt: what it resends differs from what was sent
before. Everything that the checker has to know is in its journal before it can be true (sent) or after it is (acknowledged). Rows
that a slice does not take are kept and sent later (``support.kept_rows``), where the order of time is the column ``ts``.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import headgate
import headgate.aio
from headgate.maintenance import Maintenance
from headgate_runtime.lifecycle import announce_ready
from support.journal import History, Journal, read_journal
from support.kept_rows import KeepingChannel
from support.processes import READY_S, Died, Process
from support.workload import SCHEMA, Workload

DONE = "done"


def create_table(address: str, name: str, workload: Workload, *, buckets: int = 4, limited: bool = True) -> str:
    """The table that a workload wants; returns where readers find it. ``limited``: checkpoints are stretched when nobody
    compacts."""
    with headgate.connect(address, timeout=READY_S, wait=READY_S) as hg:
        ordering = "ts" if workload.event_time else None
        table = hg.create_table(name, SCHEMA, key="id", partition_by="part", ordering=ordering, buckets=buckets, exist_ok=True)
    if not limited:
        asyncio.run(_without_limit(address, name))
    return table.info.url


async def _without_limit(address: str, table: str) -> None:
    async with headgate.aio.connect(address, timeout=READY_S, wait=READY_S) as hg:
        await Maintenance(hg, table).configure({"headgate.slice.max.log.files": "100000"})


@dataclass(slots=True)
class Producers:
    """Producers of one table, as ``with Producers(cluster.address, "t", workload, folder) as producers``.

    ``rows``: how many each sends before it flushes and ends; 0 = until killed or told to finish. ``rate``: rows a second each;
    0 = as fast as it can. ``ahead``: rows of each that are there when it begins, on top of the rate. ``batch``: rows a call.
    ``flush_every``: calls between flushes that are waited for; 0 = none. ``ca``: PEM file of an authority; empty: no TLS.
    ``code``: the import path of another version of the project (``support.earlier``).
    """

    address: str
    table: str
    workload: Workload
    folder: Path
    rows: int = 5000
    rate: float = 0
    ahead: int = 0
    batch: int = 50
    flush_every: int = 0
    timeout: float = READY_S
    token: str = ""
    ca: str = ""
    front: bool = False
    code: str = ""
    _running: dict[str, Process] = field(default_factory=dict)
    _fenced: list[Process] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for process in (*self._fenced, *self._running.values()):
            if kind is not None:
                print(process.tail(), file=sys.stderr)
            process.kill()

    def start(self, name: str, *, wait: bool = True) -> Process:
        """Returns when its channel is open; with ``wait=False`` at once. A producer of that name that still runs is fenced."""
        told = {"address": self.address, "table": self.table, "name": name, "journal": self.journal(name), "rows": self.rows}
        told |= {
            "rate": self.rate,
            "ahead": self.ahead,
            "batch": self.batch,
            "flush_every": self.flush_every,
            "timeout": self.timeout,
        }
        if not self.code:
            told |= {"token": self.token, "ca": self.ca, "front": self.front}
        flags = [f"--{option.replace('_', '-')}={value}" for option, value in (told | asdict(self.workload)).items()]
        command = [sys.executable, "-m", "support.producers", *flags]
        env, program = ({"PYTHONPATH": self.code}, "") if self.code else ({}, "support.producers")
        process = Process(name, command, self.folder / f"{name}.log", env=env, program=program)
        if before := self._running.get(name):
            before.expect_end()
            self._fenced.append(before)
        self._running[name] = process
        if wait:
            process.wait_ready()
        return process

    def part(self, name: str) -> Process:
        """The newest process of that producer."""
        return self._running[name]

    def kill(self, name: str) -> None:
        """kill -9."""
        self._running[name].kill()

    def finish(self, timeout: float = READY_S) -> None:
        """Those that run without end send no more; all flush and end. Raises Died for one that failed."""
        (self.folder / "finish").touch()
        self.wait(timeout)

    def wait(self, timeout: float = READY_S) -> None:
        """For all to have sent, flushed and ended. Raises Died for one that failed."""
        for process in self._running.values():
            process.expect_end()
            if process.wait_end(timeout):
                raise Died(f"{process.name} failed\n{process.tail()}")

    def wait_acked(self, name: str, number: int, timeout: float = READY_S) -> None:
        """Until this number or more of the producer is durable."""
        deadline = time.monotonic() + timeout
        while self.history(name).acked < number:
            if time.monotonic() > deadline or not self._running[name].is_alive:
                raise Died(f"{name} has {self.history(name)}\n{self._running[name].tail()}")
            time.sleep(0.02)

    def journal(self, name: str) -> Path:
        return self.folder / f"{name}.journal"

    def history(self, name: str) -> History:
        """What it wrote down so far."""
        return read_journal(self.journal(name), name)

    def histories(self) -> list[History]:
        """Of all that were ever started."""
        return [self.history(name) for name in self._running]


def produce(told: argparse.Namespace) -> None:
    """One attempt: from the committed offset to the end."""
    workload = Workload(told.event_time, told.deletes, told.hot_keys, told.partitions, told.layout)
    journal = Journal(told.journal)
    attempt = len(read_journal(told.journal, told.name).attempts) + 1
    tls = headgate.Tls(ca=told.ca) if told.ca else None
    connection = headgate.connect(
        told.address, timeout=told.timeout, wait=told.timeout, token=told.token or None, tls=tls, front=told.front
    )
    with connection as hg, hg.table(told.table).channel(told.name) as channel:
        committed = channel.committed_offset
        journal.opened(attempt, committed)
        keeping = KeepingChannel(hg.table(told.table), channel, workload, journal, read_journal(told.journal, told.name))
        announce_ready(f"{told.name} at {committed}")
        acks = _AckNotes(journal, channel)
        begin = time.monotonic()
        for call, (first, last) in enumerate(_calls(committed, told), 1):
            journal.sent(last)
            keeping.write(workload.rows(told.name, first, last, attempt), last)
            if told.flush_every and call % told.flush_every == 0:
                keeping.flush("durable")
            acks.note()
            if told.rate:
                time.sleep(max(0.0, begin + (last - committed - told.ahead) / told.rate - time.monotonic()))
        keeping.finish(told.timeout)
        acks.note()
    print(DONE, flush=True)


def _calls(committed: int, told: argparse.Namespace) -> Iterable[tuple[int, int]]:
    """First and last number of each call."""
    finish, last = told.journal.parent / "finish", committed
    while (last < told.rows) if told.rows else not finish.exists():
        first, last = last + 1, min(last + told.batch, told.rows or sys.maxsize)
        yield first, last


class _AckNotes:
    """Notes what the channel says is durable and queryable, when it has grown."""

    def __init__(self, journal: Journal, channel: headgate.Channel) -> None:
        self._journal = journal
        self._channel = channel
        self._noted = channel.acks

    def note(self) -> None:
        acks = self._channel.acks
        if acks.durable > self._noted.durable:
            self._journal.acked(acks.durable, "durable")
        if acks.queryable > self._noted.queryable:
            self._journal.acked(acks.queryable, "queryable")
        self._noted = acks


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="support.producers", description=__doc__)
    kinds: dict[str, Any] = {"address": str, "table": str, "name": str, "journal": Path, "rows": int, "rate": float, "batch": int}
    kinds |= {
        "ahead": int,
        "flush_every": int,
        "timeout": float,
        "hot_keys": int,
        "partitions": int,
        "layout": int,
        "token": str,
        "ca": str,
    }
    for name, kind in kinds.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, required=True)
    for name in ("event_time", "deletes", "front"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=lambda text: text == "True", required=True)
    produce(parser.parse_args(argv))


if __name__ == "__main__":
    main(sys.argv[1:])
