"""What Prometheus reads of a compactor."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from headgate_compactor.workbench import Workbench


class CompactorMetrics(Collector):
    """Registers itself. Reads numbers that the event loop's thread writes: each is right by itself."""

    def __init__(self, registry: CollectorRegistry, bench: Workbench) -> None:
        self._bench = bench
        registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        totals = self._bench.totals
        ended = CounterMetricFamily("headgate_compactor_attempts", "Attempts that have ended", labels=["outcome"])
        for outcome in ("finished", "failed", "returned"):
            ended.add_metric([outcome], getattr(totals, outcome))
        yield ended
        yield CounterMetricFamily("headgate_compactor_rows", "Rows written", value=totals.rows)
        yield GaugeMetricFamily("headgate_compactor_running", "Attempts at work", value=self._bench.running)
