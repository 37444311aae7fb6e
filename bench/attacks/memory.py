"""Messages that never end, with and without a token: what a process keeps of them, and what others notice."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from statistics import quantiles
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bench.attacks.attacked import attacked_cluster
from bench.attacks.attacker import ATTACKS, TOKEN, Metadata
from bench.tables.child import run_child
from bench.tables.figures import OURS, Figures
from bench.tables.scratch import scratch_folder
from headgate_proto.api.v1 import tables_pb2, tables_pb2_grpc
from support.cluster import Cluster
from support.memory import peak_memory, reset_peak_memory

SECTION: Final = "memory"
PEAK, GROWTH, RETURNED = "MiB, peak", "MiB more", "s to answer the attacker"
_QUIET, _HARMED = "ms, p99 of others before", "ms, p99 of others meanwhile"
OF_WRITER: Final = [name for name, attack in ATTACKS.items() if attack.part == "writer-1"]
OF_COORDINATOR: Final = [name for name, attack in ATTACKS.items() if attack.part == "coordinator-1"]

_MIB: Final = 1 << 20
_VICTIM: Final[Metadata] = (("authorization", "Bearer bob-token"),)


def measure(figures: Figures, match: str, *, quick: bool) -> None:
    """One round, of attacks whose name contains ``match``, each on a fresh cluster: memory that an allocator keeps is no part of
    the next one's.
    """
    for name, attack in ATTACKS.items():
        if match not in name:
            continue
        with scratch_folder("attacks") as folder, attacked_cluster(folder) as cluster:
            asyncio.run(_measure(figures, name, cluster, attack.streams // (8 if quick else 1)))


async def _measure(figures: Figures, name: str, cluster: Cluster, streams: int) -> None:
    part = ATTACKS[name].part
    pid, address = cluster.part(part).pid, cluster.address_of(part)
    attacking = partial(run_child, "bench.attacks.attacker:attack", name=name, address=address, streams=streams)
    async with grpc.aio.insecure_channel(address) as channel:
        call = partial(_call, part, channel)
        quiet = await _p99(call, partial(time.sleep, 2.0))
        before = reset_peak_memory(pid)
        harmed = await _p99(call, attacking)
        ended = time.monotonic()
        await call(TOKEN)
        returned = time.monotonic() - ended
    figures.add(SECTION, name, PEAK, OURS, peak_memory(pid) / _MIB)
    figures.add(SECTION, name, GROWTH, OURS, (peak_memory(pid) - before) / _MIB)
    figures.add(SECTION, name, RETURNED, OURS, returned)
    figures.add(SECTION, name, _QUIET, OURS, 1_000 * quiet)
    figures.add(SECTION, name, _HARMED, OURS, 1_000 * harmed)


async def _p99(call: Callable[[Metadata], Coroutine[object, object, None]], meanwhile: Callable[[], object]) -> float:
    """Seconds of the calls of another principal, one after the other, while that runs on a thread."""
    seconds: list[float] = []
    running = asyncio.ensure_future(asyncio.to_thread(meanwhile))
    while not running.done() or len(seconds) < 2:
        begun = time.monotonic()
        await call(_VICTIM)
        seconds.append(time.monotonic() - begun)
        await asyncio.sleep(0.01)
    await running
    return quantiles(seconds, n=100)[-1]


async def _call(part: str, channel: grpc.aio.Channel, metadata: Metadata) -> None:
    """What everybody may ask: a coordinator for the tables, a writer for its health. Tried again until it is answered."""
    while True:
        if part == "coordinator-1":
            tables = tables_pb2_grpc.TableServiceStub(channel)
            code = await tables.ListTables(tables_pb2.ListTablesRequest(), metadata=metadata).code()
        else:
            code = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest()).code()
        if code is grpc.StatusCode.OK:
            return
        await asyncio.sleep(0.01)
