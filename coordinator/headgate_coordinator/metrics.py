"""What Prometheus is told of this coordinator and of the tables that it owns."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from headgate_runtime.metrics import CappedLabel

_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Metrics:
    """All figures of the process; a table's are behind ``of``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._labels = CappedLabel()
        table = ["table"]
        self.owned = Gauge("headgate_tables_owned", "Tables that this coordinator owns", registry=registry)
        self.writers = Gauge("headgate_writers", "Writers with a control stream here", registry=registry)
        self.redis = Gauge("headgate_redis_reachable", "1 while Redis answers", registry=registry)
        self.fences = Counter("headgate_fences", "Tables taken; many an hour are an alarm (rule R5)", table, registry=registry)
        self.rounds = Counter("headgate_rounds", "Rounds that readers see", table, registry=registry)
        self.aborts = Counter("headgate_generations", "Generations after the first: aborts", table, registry=registry)
        self.alarms = Counter("headgate_alarms", "Sentences for the operator", table, registry=registry)
        self.files = Counter("headgate_round_files", "Data files committed", table, registry=registry)
        self.bytes = Counter("headgate_round_bytes", "Arrow bytes committed", table, registry=registry)
        self.uncommitted = Gauge("headgate_uncommitted_bytes", "Arrow bytes taken and not committed", table, registry=registry)
        self.log_files = Gauge(
            "headgate_log_files_per_slice", "Most that one slice got since the table was taken", table, registry=registry
        )
        self.seconds = Histogram(
            "headgate_round_seconds", "From barrier to published", table, registry=registry, buckets=_SECONDS
        )

    def of(self, table: str) -> "TableMetrics":
        """The series of one table."""
        return TableMetrics(self, self._labels.of(table))


class TableMetrics:
    """One table's series."""

    def __init__(self, metrics: Metrics, label: str) -> None:
        self.fences = metrics.fences.labels(label)
        self.rounds = metrics.rounds.labels(label)
        self.aborts = metrics.aborts.labels(label)
        self.alarms = metrics.alarms.labels(label)
        self.files = metrics.files.labels(label)
        self.bytes = metrics.bytes.labels(label)
        self.uncommitted = metrics.uncommitted.labels(label)
        self.log_files = metrics.log_files.labels(label)
        self.seconds = metrics.seconds.labels(label)
