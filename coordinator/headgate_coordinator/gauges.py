"""What is true of a coordinator and its tables at the moment of a scrape. Of a table that is no longer owned here, nothing is.

A figure that was set once would stay in a coordinator that lost the table, and contradict its new owner.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from headgate_runtime.metrics import CappedLabel

ANSWER_S = 5.0
"""A scrape fails when the event loop does not answer within this time, so that a coordinator that hangs is down."""


@dataclass(frozen=True, slots=True)
class TableFigures:
    """One owned table. ``last_commit_at``: seconds since the epoch. ``log_files``, ``log_bytes``: of the fullest slice that is
    not stuck; None: not counted yet. ``intake_limit``: bytes a second; infinite without backpressure.
    """

    uncommitted_bytes: int = 0
    last_commit_at: float = 0.0
    log_files: int | None = None
    log_bytes: int | None = None
    stretch: int = 1
    intake_limit: float = math.inf
    intake_stopped: bool = False
    stuck_slices: int = 0
    operations_running: int = 0
    operations_waiting: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """``tables``: those owned here, by name. ``alarms``: of each table the kinds that stand, of the coordinator itself under
    the name "".
    """

    writers: int
    compactors: int
    redis_reachable: bool
    tables: Mapping[str, TableFigures] = field(default_factory=dict)
    alarms: Mapping[str, Sequence[str]] = field(default_factory=dict)


_OF_TABLES: Sequence[tuple[str, str, Callable[[TableFigures], float | None]]] = (
    ("uncommitted_bytes", "Arrow bytes taken and not committed", lambda of: of.uncommitted_bytes),
    (
        "last_commit_timestamp_seconds",
        "When readers first saw the newest commit with rows; before the first one the beginning of this ownership",
        lambda of: of.last_commit_at,
    ),
    ("fullest_slice_log_files", "Most log files of any slice that is not stuck", lambda of: of.log_files),
    ("fullest_slice_log_bytes", "Most log bytes of any slice that is not stuck", lambda of: of.log_bytes),
    (
        "checkpoint_stretch_ratio",
        "How many times further apart checkpoints are while compaction is behind",
        lambda of: of.stretch,
    ),
    (
        "intake_limit_bytes_per_second",
        "Arrow bytes that all writers together take while compaction is behind; +Inf: no limit",
        lambda of: of.intake_limit,
    ),
    ("intake_stopped", "1 while slices are full and no rows are taken", lambda of: of.intake_stopped),
    ("stuck_slices", "Slices that cannot be compacted or are set aside", lambda of: of.stuck_slices),
    ("operations_running", "Operations of compactions at compactors", lambda of: of.operations_running),
    (
        "operations_waiting",
        "Operations of compactions that wait for a compactor or their next try",
        lambda of: of.operations_waiting,
    ),
)


class Gauges(Collector):
    """Registers itself. ``read`` is called on ``loop``, whose thread changes what it reads; a scrape has a thread of its own.
    ``labels``: values of the label ``table``.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        loop: asyncio.AbstractEventLoop,
        read: Callable[[], Figures],
        labels: CappedLabel,
    ) -> None:
        self._loop = loop
        self._read = read
        self._labels = labels
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Raises TimeoutError."""
        yield from families(self._ask(), self._labels)

    def _ask(self) -> Figures:
        """Not by run_coroutine_threadsafe: after the loop has ended, its coroutine would be a warning about one never awaited."""
        answer: Future[Figures] = Future()

        def reply() -> None:
            try:
                answer.set_result(self._read())
            except Exception as error:  # noqa: BLE001 - the scrape raises it
                answer.set_exception(error)

        self._loop.call_soon_threadsafe(reply)
        return answer.result(ANSWER_S)


def families(figures: Figures, labels: CappedLabel) -> Iterator[GaugeMetricFamily]:
    """The figures as Prometheus takes them. Of tables that share the label "other", each figure is the largest."""
    yield GaugeMetricFamily("headgate_writers", "Writers with a control stream here", value=figures.writers)
    yield GaugeMetricFamily("headgate_compactors", "Compactors with a stream here", value=figures.compactors)
    yield GaugeMetricFamily("headgate_redis_reachable", "1 while Redis answers", value=figures.redis_reachable)
    yield GaugeMetricFamily("headgate_tables_owned", "Tables that this coordinator owns", value=len(figures.tables))
    for name, text, figure in _OF_TABLES:
        family = GaugeMetricFamily(f"headgate_{name}", text, labels=["table"])
        found: dict[str, float] = {}
        for table, of in figures.tables.items():
            if (value := figure(of)) is not None:
                found[labels.of(table)] = max(value, found.get(labels.of(table), -math.inf))
        for label, value in found.items():
            family.add_metric([label], value)
        yield family
    yield _alarms(figures, labels)


def _alarms(figures: Figures, labels: CappedLabel) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "headgate_alarm", "How many alarms of the kind stand; `headgate status` has their texts", labels=["table", "kind"]
    )
    found: Counter[tuple[str, str]] = Counter()
    for table, kinds in figures.alarms.items():
        found.update((labels.of(table) if table else "", kind) for kind in kinds)
    for (table, kind), count in found.items():
        family.add_metric([table, kind], count)
    return family
