"""The run: producers send, one process of each kind is killed, and the moments at which rows become visible are recorded."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

import headgate
from demo.dev_cluster import DevCluster
from demo.feed import Feed
from demo.freshness import Trace
from demo.producers import TABLE, Producer
from demo.screen import Screen

_POLL_S = 0.02
_PATIENCE_S = 60.0
_ASK_S = 0.05
KILLS = ((0.20, "writer-1"), (0.35, "compactor-1"), (0.58, "coordinator-1"))
"""Share of the events at which each process is killed; the compactor as soon as it is at work then, or at ``_IDLE_AT``."""
_IDLE_AT = 0.55
HURRY_AT = 0.75


@dataclass(slots=True)
class Kill:
    """A killed process. ``back_after``: seconds until it served again, None if not; ``wall_ms``: ``at`` by the wall clock."""

    name: str
    at: float
    seen: int
    wall_ms: int
    back_after: float | None = None


@dataclass(slots=True)
class Run:
    """The record of a run. Moments are monotonic seconds; ``hurried``: when producers began to send as fast as they could."""

    began: float
    ended: float = 0.0
    hurried: float = 0.0
    queryable_then: int = 0
    kills: list[Kill] = field(default_factory=list)
    traces: Sequence[Trace] = ()
    late: bool = False


class Stream:
    """One run of all feeds. ``rate``: events a second of all producers together, while paced."""

    def __init__(self, cluster: DevCluster, feeds: Sequence[Feed], rate: float, screen: Screen) -> None:
        self._cluster = cluster
        self._screen = screen
        self._asked = 0.0
        self._compacting = False
        self._hurry = threading.Event()
        self._total = sum(feed.events.num_rows for feed in feeds)
        shares = [rate * feed.events.num_rows / self._total for feed in feeds]
        self._producers = [Producer(cluster.address, feed, share, self._hurry) for feed, share in zip(feeds, shares, strict=True)]
        self._seen: list[list[tuple[float, int]]] = [[] for _ in feeds]

    def run(self) -> Run:
        """Runs to the end. Raises a producer's error; sets ``late`` when no row became visible for a minute."""
        run = Run(began=time.monotonic())
        self._screen.begin(self._total)
        for producer in self._producers:
            producer.start()
        with headgate.connect(self._cluster.address) as self._connection:
            self._run_until_visible(run)
        self._record_visible()
        run.ended = max((seen[-1][0] for seen in self._seen if seen), default=time.monotonic())
        run.traces = [Trace(p.sent, seen) for p, seen in zip(self._producers, self._seen, strict=True)]
        for producer in self._producers:
            if producer.failure is not None:
                raise producer.failure
        return run

    def _run_until_visible(self, run: Run) -> None:
        """Returns when all rows are visible, or none became visible for a minute."""
        moved = run.began
        while any(producer.is_alive() for producer in self._producers):
            time.sleep(_POLL_S)
            if self._record_visible():
                moved = time.monotonic()
            elif time.monotonic() - moved > _PATIENCE_S:
                run.late = True
                break
            self._kill_or_hurry(run)
            self._screen.tick(self._queryable(), self._total, self._rate(), self._fresh())

    def _record_visible(self) -> bool:
        """Records the visible offsets; returns whether more rows are visible than before."""
        moved = False
        for producer, seen in zip(self._producers, self._seen, strict=True):
            now = producer.queryable
            if now > (seen[-1][1] if seen else 0):
                seen.append((time.monotonic(), now))
                moved = True
        return moved

    def _kill_or_hurry(self, run: Run) -> None:
        """Kills processes and hurries producers by the share of events sent; a kill waits until rows flow after the last."""
        share = self._sent() / self._total
        if len(run.kills) < len(KILLS) and self._is_due(KILLS[len(run.kills)], share, run):
            name = KILLS[len(run.kills)][1]
            events, wall_ms = len(self._cluster.events), time.time_ns() // 1_000_000
            run.kills.append(Kill(name, self._cluster.kill(name), events, wall_ms))
            self._screen.note(f"kill -9 {name}", "killed", "bold red", name=name)
        if run.kills and run.kills[-1].back_after is None:
            self._note_return(run.kills[-1])
        if not self._hurry.is_set() and len(run.kills) == len(KILLS) and share >= HURRY_AT and self._settled(run):
            run.hurried, run.queryable_then = time.monotonic(), self._queryable()
            self._hurry.set()
            self._screen.note("the rest as fast as it goes", "hurry", "bold")

    def _is_due(self, kill: tuple[float, str], share: float, run: Run) -> bool:
        """Whether it is time for this kill."""
        at, name = kill
        if share < at or not self._settled(run):
            return False
        return not name.startswith("compactor") or self._is_compacting() or share >= _IDLE_AT

    def _is_compacting(self) -> bool:
        """Whether a compaction was running when the owner was last asked."""
        if time.monotonic() - self._asked >= _ASK_S:
            self._asked = time.monotonic()
            (table,) = self._connection.status(TABLE).tables
            self._compacting = bool(table.operations)
        return self._compacting

    def _settled(self, run: Run) -> bool:
        """Whether every producer has rows visible that it sent after the last kill."""
        if not run.kills:
            return True
        kill = run.kills[-1].at
        traces = [Trace(p.sent, seen) for p, seen in zip(self._producers, self._seen, strict=True)]
        return run.kills[-1].back_after is not None and all(trace.back_after(kill) is not None for trace in traces)

    def _note_return(self, kill: Kill) -> None:
        for moment, fields in self._cluster.events[kill.seen :]:
            if fields["event"] == "serving" and fields["name"] == kill.name:
                kill.back_after = moment - kill.at
                text = f"{kill.name} serves again as process {fields['pid']}, {kill.back_after:.1f} s after the kill"
                self._screen.note(text, "serving", "green", name=kill.name, pid=fields["pid"])

    def _sent(self) -> int:
        return sum(producer.sent[-1][1] for producer in self._producers if producer.sent)

    def _queryable(self) -> int:
        return sum(seen[-1][1] for seen in self._seen if seen)

    def _rate(self) -> float:
        """Visible events a second over the last five seconds."""
        since = time.monotonic() - 5.0
        grown = 0
        for seen in self._seen:
            before = next((offset for moment, offset in reversed(seen) if moment < since), 0)
            grown += (seen[-1][1] if seen else 0) - before
        return grown / 5.0

    def _fresh(self) -> float | None:
        """The median wait of the batches that became visible last."""
        waits = [Trace(p.sent[-400:], seen[-4:]).waits()[1] for p, seen in zip(self._producers, self._seen, strict=True)]
        newest = np.concatenate([wait[-20:] for wait in waits])
        return float(np.median(newest)) if len(newest) else None
