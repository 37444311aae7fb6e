"""What others notice of an attack, and the process: measured the whole time, before it, meanwhile, and until all is as it was."""

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Final, NoReturn, TypeAlias

import grpc
import psutil
import pyarrow as pa

import headgate.aio
from bench.attacks import load
from bench.attacks.attacked import TABLE
from bench.tables.figures import OURS, Figures
from support.cluster import Cluster
from support.memory import peak_memory, reset_peak_memory

DELAY: Final = "ms, longest delay of the loop"
TIMES: Final = "times, p99 of another principal"
TIMES_OF_LOAD: Final = "times, that to beside the load"
RETURNED: Final = "s until memory and p99 are back"
PEAK, GROWTH = "MiB, peak", "MiB more, peak"
_QUIET_DELAY: Final = "ms, the same before"
_P99, _QUIET_P99, _LOAD_P99 = "ms, p99 of another principal", "ms, that p99 before", "ms, that p99 beside the load"
_CALLS: Final = "calls of another principal meanwhile"
_LOAD, _SPENT = "CPU s a s, attacker", "CPU s a s, attacked"
_MEMORY_S, _P99_S = "s until memory is back", "s until the p99 is back"
_KEPT: Final = 32 << 20
"""An allocator keeps some; so much more than before counts as returned."""
_TIMES: Final = 2.0
"""A p99 of so many times the one before is back."""
_WINDOW_S, _STEP_S = 1.0, 0.05
_LONGEST_S: Final = 60.0
_PAUSE_S: Final = 0.01
_MIB: Final = 1 << 20
NOTES: Final = (
    "The loop's delay: how long the process takes to say that a method is not there. The other principal sends a row until it is",
    "acknowledged as received, or asks a coordinator for the list of tables; one call after the other, before and meanwhile.",
    "Beside the load: other processes take as much CPU as the attacker took, and nobody is attacked. So much of a p99 is the",
    "machine's, whose cores the attacker takes from everybody; what is more is the attacked process's.",
    "A call that is refused is made again, so that an attack lasts its whole time.",
    f"Back: memory, at most {_KEPT >> 20} MiB more than before; p99, the first second of calls whose p99 is",
    f"at most {_TIMES:g} times that of before. Counted from the attack's end, and given up after {_LONGEST_S:.0f} s.",
)
_COLUMNS: Final[dict[str, pa.DataType]] = {"id": pa.string(), "n": pa.int64()}
_ROW: Final = pa.RecordBatch.from_pydict({"id": ["a"], "n": [1]}, pa.schema(_COLUMNS))

Call: TypeAlias = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class Calls:
    """Calls one after the other: when each began, and the seconds that it took."""

    took: list[tuple[float, float]] = field(default_factory=list)

    async def repeat(self, call: Call) -> NoReturn:
        while True:
            began = time.monotonic()
            await call()
            self.took.append((began, time.monotonic() - began))
            await asyncio.sleep(_PAUSE_S)

    def between(self, begin: float, end: float) -> list[float]:
        """Seconds of the calls that were under way then."""
        return [seconds for began, seconds in self.took if began < end and began + seconds > begin]


async def measure(figures: Figures, section: str, name: str, cluster: Cluster, part: str, attack: Call, quiet_s: float) -> None:
    """``attack``: returns at its end. ``quiet_s``: how long the other principal is measured alone."""
    figures.note(section, *NOTES)
    async with (
        headgate.aio.connect(cluster.address, token="bob-token") as hg,
        grpc.aio.insecure_channel(cluster.address_of(part)) as channel,
    ):
        await hg.create_table(TABLE, _ROW.schema, key="id", buckets=2)
        victim = await hg.create_table("victim", _ROW.schema, key="id", buckets=2)
        async with victim.channel("v") as rows:
            call = hg.tables if part == "coordinator-1" else lambda: _row_is_received(rows)
            await _watched(figures, section, name, cluster.part(part).pid, call, _Loop(channel).answers, attack, quiet_s)


async def _watched(
    figures: Figures, section: str, name: str, pid: int, call: Call, loop: Call, attack: Call, quiet_s: float
) -> None:
    others, delays = Calls(), Calls()
    await call()
    async with asyncio.TaskGroup() as tasks:
        repeated = [tasks.create_task(others.repeat(call)), tasks.create_task(delays.repeat(loop))]
        begun = time.monotonic()
        await asyncio.sleep(quiet_s)
        before, attacked, spent = reset_peak_memory(pid), time.monotonic(), _Spent.until_now(pid)
        await attack()
        ended, peak, spent = time.monotonic(), peak_memory(pid), _Spent.until_now(pid) - spent
        quiet = p99(others.between(begun, attacked))
        memory_s = await _memory_returned(pid, before + _KEPT, ended)
        p99_s = await p99_returned(others, _TIMES * quiet, ended)
        await _has_begun(delays, ended)
        beside = p99(await _beside_the_load(others, spent.by_children / (ended - attacked), ended - attacked))
        for task in repeated:
            task.cancel()
    meanwhile = others.between(attacked, ended)
    harmed = p99(meanwhile)
    for unit, value in (
        (PEAK, peak / _MIB),
        (GROWTH, (peak - before) / _MIB),
        (DELAY, 1_000 * max(delays.between(attacked, ended))),
        (_QUIET_DELAY, 1_000 * max(delays.between(begun, attacked))),
        (_CALLS, len(meanwhile)),
        (_P99, 1_000 * harmed),
        (_QUIET_P99, 1_000 * quiet),
        (_LOAD_P99, 1_000 * beside),
        (TIMES, harmed / quiet),
        (TIMES_OF_LOAD, harmed / beside),
        (_MEMORY_S, memory_s),
        (_P99_S, p99_s),
        (RETURNED, max(memory_s, p99_s)),
        (_LOAD, spent.by_children / (ended - attacked)),
        (_SPENT, spent.by_attacked / (ended - attacked)),
    ):
        figures.add(section, name, unit, OURS, value)


async def _beside_the_load(others: Calls, share: float, seconds: float) -> list[float]:
    """Seconds of the others' calls while processes compute that long, with so much of a CPU."""
    begun = time.monotonic()
    await load.computing(share, seconds)
    ended = time.monotonic()
    await _has_begun(others, ended)
    return others.between(begun, ended)


@dataclass(frozen=True, slots=True)
class _Spent:
    """CPU seconds. ``by_children``: of the bench that have ended, as attackers have."""

    by_children: float
    by_attacked: float

    @classmethod
    def until_now(cls, pid: int) -> "_Spent":
        children, attacked = resource.getrusage(resource.RUSAGE_CHILDREN), psutil.Process(pid).cpu_times()
        return cls(children.ru_utime + children.ru_stime, attacked.user + attacked.system)

    def __sub__(self, earlier: "_Spent") -> "_Spent":
        return _Spent(self.by_children - earlier.by_children, self.by_attacked - earlier.by_attacked)


async def _memory_returned(pid: int, most: int, ended: float) -> float:
    """Seconds after ``ended``."""
    process = psutil.Process(pid)
    while process.memory_info().rss > most and time.monotonic() < ended + _LONGEST_S:
        await asyncio.sleep(_PAUSE_S)
    return time.monotonic() - ended


async def p99_returned(calls: Calls, most: float, ended: float) -> float:
    """The seconds from ``ended`` to the first window whose p99 is right, however long ago that was."""
    first = ended
    while first < ended + _LONGEST_S:
        await asyncio.sleep(max(0.0, first + _WINDOW_S - time.monotonic()))
        await _has_begun(calls, first + _WINDOW_S)
        if p99(calls.between(first, first + _WINDOW_S)) <= most:
            break
        first += _STEP_S
    return first - ended


async def _has_begun(calls: Calls, when: float) -> None:
    """Returns when no earlier call is under way any more."""
    while not calls.took or calls.took[-1][0] < when:
        await asyncio.sleep(_PAUSE_S)


def p99(seconds: list[float]) -> float:
    """Of one call, its own."""
    return quantiles(seconds, n=100, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]


async def _row_is_received(rows: headgate.aio.Channel) -> None:
    await (await rows.upsert(_ROW)).wait("received")


class _Loop:
    """A method that is not there: the server's loop says so, always in the same way, and nothing else is asked."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/headgate.api.v1.TableService/None")
        self._right: grpc.StatusCode | None = None

    async def answers(self) -> None:
        """What refuses the call before the loop sees it is no answer: it is made again."""
        while (code := await self._call(b"", wait_for_ready=True).code()) is not (self._right or code):
            await asyncio.sleep(_PAUSE_S)
        self._right = code
