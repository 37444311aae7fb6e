"""What clients do, each function in a process of its own: load a feed, measure freshness, send from many channels at once."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

import headgate
from bench.ingest.workload import BATCH_ROWS
from bench.tables.usage import Moment, peak_bytes


def connect(address: str, token: str = "", ca: str = "") -> headgate.Headgate:
    """``ca``: a PEM file of the cluster's authority; "": plaintext."""
    return headgate.connect(address, token=token or None, tls=headgate.Tls(ca=ca) if ca else None)


def load(
    address: str, table: str, feed: str, channels: int, warm_up: int, processes: Sequence[int], token: str = "", ca: str = ""
) -> dict[str, float]:
    """The whole feed, spread over ``channels``, until it is queryable. ``warm_up``: batches sent before the clock starts.

    Returns ``rows``, ``wall`` and ``cpu`` seconds (this process and the cluster's ``processes``), ``client_cpu`` and ``peak``.
    """
    batches = pa.ipc.open_file(pa.memory_map(feed))
    with connect(address, token, ca) as hg:
        target = hg.table(table)
        opened = [target.channel(f"loader-{number}") for number in range(channels)]
        _send(opened, batches, range(warm_up))
        begin, alone = Moment.now(processes), Moment.now()
        _send(opened, batches, range(warm_up, batches.num_record_batches))
        used, own = Moment.now(processes) - begin, Moment.now() - alone
        for channel in opened:
            channel.close()
    rows = sum(batches.get_batch(number).num_rows for number in range(warm_up, batches.num_record_batches))
    return {"rows": rows, "wall": used.wall, "cpu": used.cpu, "client_cpu": own.cpu, "peak": peak_bytes()}


def load_evolving(
    address: str, table: str, feed: str, channels: int, warm_up: int, processes: Sequence[int], every: float
) -> dict[str, float]:
    """As ``load``, with a column more in each batch, which has another name ``every`` so many seconds; 0: always the same.

    Returns also how many columns were ``added`` after the first.
    """
    batches = pa.ipc.open_file(pa.memory_map(feed))
    with connect(address) as hg:
        target = hg.table(table)
        target.configure({"headgate.evolve": "add"})
        opened = [target.channel(f"loader-{number}") for number in range(channels)]
        began = time.perf_counter()

        def with_column(batch: pa.RecordBatch) -> pa.RecordBatch:
            number = int((time.perf_counter() - began) / every) if every else 0
            return batch.append_column(f"added_{number}", batch.column("version"))

        _send(opened, batches, range(warm_up), with_column)
        begin, began = Moment.now(processes), time.perf_counter()
        _send(opened, batches, range(warm_up, batches.num_record_batches), with_column)
        used = Moment.now(processes) - begin
        for channel in opened:
            channel.close()
        added = sum(name.startswith("added_") for name in hg.table(table).info.schema.names) - 1
    rows = (batches.num_record_batches - warm_up) * BATCH_ROWS
    return {"rows": rows, "wall": used.wall, "cpu": used.cpu, "added": added}


def _send(
    channels: Sequence[headgate.Channel],
    batches: pa.ipc.RecordBatchFileReader,
    numbers: range,
    changed: Callable[[pa.RecordBatch], pa.RecordBatch] = lambda batch: batch,
) -> None:
    def work(at: int) -> None:
        for number in numbers[at :: len(channels)]:
            channels[at].upsert(changed(batches.get_batch(number)))
        channels[at].flush("queryable")

    in_threads(work, len(channels))


def in_threads(work: Callable[[int], None], count: int) -> None:
    """Calls ``work`` with each number below ``count``, each in a thread. Raises an error of theirs once all have ended."""
    with ThreadPoolExecutor(count) as threads:
        begun = [threads.submit(work, at) for at in range(count)]
    for each in begun:
        each.result()


def freshness(address: str, table: str, feed: str, rate: int, seconds: float, pieces: int) -> dict[str, list[float]]:
    """``rate`` rows a second in ``pieces`` sends a second. Returns under each level the seconds from send to it, per send."""
    batches = pa.ipc.open_file(pa.memory_map(feed))
    rows = rate // pieces
    levels: tuple[headgate.Level, ...] = ("durable", "queryable")
    took: dict[str, list[float]] = {level: [] for level in levels}
    with headgate.connect(address) as hg, hg.table(table).channel("fresh") as channel:
        sent: list[tuple[float, headgate.Receipt]] = []
        ended = threading.Event()

        def watch(level: headgate.Level) -> None:
            at = 0
            while not (ended.is_set() and at == len(sent)):
                if at == len(sent):
                    time.sleep(0.001)
                    continue
                began, receipt = sent[at]
                receipt.wait(level)
                took[level].append(time.perf_counter() - began)
                at += 1

        watchers = [threading.Thread(target=watch, args=(level,)) for level in levels]
        for watcher in watchers:
            watcher.start()
        begin = time.perf_counter()
        for number in range(int(seconds * pieces)):
            time.sleep(max(0.0, begin + number / pieces - time.perf_counter()))
            start = number * rows
            piece = batches.get_batch(start // BATCH_ROWS).slice(start % BATCH_ROWS, rows)
            sent.append((time.perf_counter(), channel.upsert(piece)))
        ended.set()
        for watcher in watchers:
            watcher.join()
    return took


def overload(address: str, table: str, feed: str, seconds: float, channels: int) -> dict[str, float]:
    """Sends as fast as it can, from many channels at once, for some seconds. Returns ``rows`` taken and ``wall``."""
    batches = pa.ipc.open_file(pa.memory_map(feed))
    counts = [0] * channels
    with headgate.connect(address, timeout=300) as hg:
        target = hg.table(table)
        opened = [target.channel(f"flood-{number}") for number in range(channels)]
        begin = time.perf_counter()

        def work(at: int) -> None:
            number = at
            while time.perf_counter() - begin < seconds:
                opened[at].upsert(batches.get_batch(number % batches.num_record_batches))
                counts[at] += BATCH_ROWS
                number += channels
            opened[at].flush("queryable")

        in_threads(work, channels)
        wall = time.perf_counter() - begin
        for channel in opened:
            channel.close()
    return {"rows": sum(counts), "wall": wall}
