"""Prometheus metrics of a compactor."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from headgate_compactor.attempt_pool import AttemptPool


class CompactorMetrics(Collector):
    """Registers itself. Reads counters without a lock: the event loop writes them, and each is consistent by itself."""

    def __init__(self, registry: CollectorRegistry, pool: AttemptPool) -> None:
        self._pool = pool
        registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        totals = self._pool.totals
        ended = CounterMetricFamily("headgate_compactor_attempts", "Attempts that have ended", labels=["outcome"])
        for outcome in ("finished", "failed", "returned"):
            ended.add_metric([outcome], getattr(totals, outcome))
        yield ended
        yield CounterMetricFamily("headgate_compactor_rows", "Rows written", value=totals.rows)
        yield GaugeMetricFamily("headgate_compactor_attempts_running", "Attempts at work", value=self._pool.running)
