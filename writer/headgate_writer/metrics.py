"""Prometheus metrics of a writer. Counting adds to plain numbers; all other work is done when Prometheus reads."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.metrics import CappedLabel
from headgate_writer.buffers import MemoryBudget


@dataclass(slots=True)
class TableTotals:
    """Rows of one table that were routed since the start of the process, and their Arrow bytes."""

    rows: int = 0
    nbytes: int = 0


class Refusals:
    """Counts refused batches by the code of their error."""

    def __init__(self) -> None:
        self.by_code: Counter[errors_pb2.Code.ValueType] = Counter()

    def count_refusal(self, code: "errors_pb2.Code.ValueType") -> None:
        """Counts one batch."""
        self.by_code[code] += 1


class TableLike(Protocol):
    """A table that is attached now."""

    @property
    def name(self) -> str: ...

    @property
    def uncommitted_bytes(self) -> int: ...

    @property
    def channels(self) -> int: ...

    @property
    def lags(self) -> Mapping[str, int]: ...


class TablesLike(Protocol):
    """All of them."""

    @property
    def totals(self) -> Mapping[str, TableTotals]: ...

    def attached(self) -> Sequence[TableLike]: ...


class WriterMetrics(Collector):
    """Registers itself. Reads counters without a lock: the event loop writes them, and each is consistent by itself."""

    def __init__(self, registry: CollectorRegistry, tables: TablesLike, refusals: Refusals, budget: MemoryBudget) -> None:
        self._tables = tables
        self._refusals = refusals
        self._budget = budget
        self._label = CappedLabel()
        self._channel = CappedLabel()
        registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        totals, tables = list(self._tables.totals.items()), self._tables.attached()
        rows = CounterMetricFamily("headgate_writer_rows", "Rows taken from clients", labels=["table"])
        self._add(rows, ((name, each.rows) for name, each in totals))
        nbytes = CounterMetricFamily("headgate_writer_bytes", "Arrow bytes taken from clients", labels=["table"])
        self._add(nbytes, ((name, each.nbytes) for name, each in totals))
        uncommitted = GaugeMetricFamily(
            "headgate_writer_uncommitted_bytes", "Arrow bytes taken from clients that are not committed", labels=["table"]
        )
        self._add(uncommitted, ((table.name, table.uncommitted_bytes) for table in tables))
        channels = GaugeMetricFamily("headgate_writer_channels", "Channels held now", labels=["table"])
        self._add(channels, ((table.name, table.channels) for table in tables))
        lag = GaugeMetricFamily(
            "headgate_writer_channel_lag_offsets",
            "Offsets up to the last row taken, and not durable; of all channels beyond 1,000 the most",
            labels=["table", "channel"],
        )
        for labels, most in self._lags(tables).items():
            lag.add_metric(labels, most)
        refused = CounterMetricFamily("headgate_writer_refused_batches", "Batches refused", labels=["code"])
        for code, count in list(self._refusals.by_code.items()):
            refused.add_metric([errors_pb2.Code.Name(code)], count)
        yield from (rows, nbytes, uncommitted, channels, lag, refused)
        yield GaugeMetricFamily("headgate_writer_buffer_bytes", "Arrow bytes of rows in memory now", value=self._budget.used)
        yield GaugeMetricFamily(
            "headgate_writer_buffer_limit_bytes", "From here on clients are not read", value=self._budget.hard
        )

    def _add(self, family: CounterMetricFamily | GaugeMetricFamily, figures: Iterable[tuple[str, int]]) -> None:
        """Adds one sample for each label: Prometheus refuses a second one, and all tables beyond 1,000 have the same."""
        sums: Counter[str] = Counter()
        for name, figure in figures:
            sums[self._label.of(name)] += figure
        for label, total in sums.items():
            family.add_metric([label], total)

    def _lags(self, tables: Iterable[TableLike]) -> dict[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}
        for table in tables:
            for channel, lag in table.lags.items():
                labels = self._label.of(table.name), self._channel.of(channel)
                found[labels] = max(lag, found.get(labels, 0))
        return found
