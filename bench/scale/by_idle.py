"""Time and CPU of one busy table's checkpoints, beside more and more channels and tables that do nothing."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.scale.readings import Reading, read
from bench.tables.scratch import scratch_folder
from demo.ports import free_port
from headgate import aio
from support.cluster import Cluster
from support.producers import Producers, create_table
from support.workload import SCHEMA, Workload

BUSY = "busy"
WRITERS = 2
RATE = 1000.0
AT_ONCE = 16
"""Opens and creates under way together."""
_MEMORY = "6GiB"
"""Of a writer: 1,000 channels are above the limit of the default 1GiB (191)."""
_WORKLOAD = Workload(event_time=False, partitions=1)


@dataclass(frozen=True, slots=True)
class ByIdle:
    """``checkpoints`` of the busy table in ``seconds``. ``used``: by all processes meanwhile."""

    channels: int
    tables: int
    seconds: float
    used: Reading

    @property
    def checkpoints(self) -> float:
        """How many were published."""
        return self.used.sums["headgate_checkpoint_duration_seconds_count"]

    @property
    def checkpoint_s(self) -> float:
        """From barrier to published, the mean."""
        return self.used.sums["headgate_checkpoint_duration_seconds_sum"] / max(1.0, self.checkpoints)


def by_idle(channels: int, tables: int, seconds: float, interval: float) -> ByIdle:
    """``channels``: of the busy table, open and without rows. ``tables``: without channels."""
    metrics = f"127.0.0.1:{free_port()}"
    coordinator = ["--checkpoint-interval", f"{interval}s", "--metrics-listen", metrics]
    flags = {"coordinator": coordinator, "writer": ["--memory-limit", _MEMORY]}
    with scratch_folder("scale") as folder, Cluster(folder / "cluster", writers=WRITERS, options=flags) as cluster:
        create_table(cluster.address, BUSY, _WORKLOAD, buckets=4, limited=False)
        asyncio.run(_create(cluster.address, tables))
        with _idle(cluster.address, channels), _busy(cluster.address, folder):
            threading.Event().wait(3 * interval)
            before = read(cluster, metrics, BUSY)
            threading.Event().wait(seconds)
            used = read(cluster, metrics, BUSY) - before
    return ByIdle(channels, tables, seconds, used)


async def _create(address: str, tables: int) -> None:
    turn = asyncio.Semaphore(AT_ONCE)
    async with aio.connect(address, timeout=600) as hg, asyncio.TaskGroup() as creating:

        async def create(number: int) -> None:
            async with turn:
                await hg.create_table(f"idle-{number}", SCHEMA, key="id", partition_by="part", buckets=4)

        for number in range(tables):
            creating.create_task(create(number))


@contextlib.contextmanager
def _idle(address: str, channels: int) -> Iterator[None]:
    """So many open channels, on a thread with a loop of its own."""
    opened, done = threading.Event(), threading.Event()
    failure: list[BaseException] = []

    def hold() -> None:
        try:
            asyncio.run(_hold(address, channels, opened, done))
        except BaseException as error:  # noqa: BLE001 - the block's thread raises it
            failure.append(error)
            opened.set()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        opened.wait()
        if failure:
            raise RuntimeError("the idle channels could not be opened") from failure[0]
        yield
    finally:
        done.set()
        thread.join()


async def _hold(address: str, channels: int, opened: threading.Event, done: threading.Event) -> None:
    turn = asyncio.Semaphore(AT_ONCE)
    async with aio.connect(address, timeout=600) as hg, contextlib.AsyncExitStack() as held:
        table = await hg.table(BUSY)

        async def hold(number: int) -> None:
            async with turn:
                await held.enter_async_context(table.channel(f"idle-{number}"))

        await asyncio.gather(*(hold(number) for number in range(channels)))
        opened.set()
        await asyncio.to_thread(done.wait)


@contextlib.contextmanager
def _busy(address: str, folder: Path) -> Iterator[None]:
    with Producers(address, BUSY, _WORKLOAD, folder, rows=0, rate=RATE, timeout=120) as producers:
        producers.start("busy")
        producers.wait_acked("busy", 1)
        yield
        producers.finish(600)
