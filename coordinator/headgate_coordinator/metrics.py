"""Prometheus metrics of a coordinator and of the tables that it owns."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from headgate_runtime.metrics import CappedLabel

_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_LONG_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)


class Metrics:
    """All metrics of the process; ``for_table`` gives one table's."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._labels = CappedLabel()
        table = ["table"]
        self.owned = Gauge("headgate_tables_owned", "Tables that this coordinator owns", registry=registry)
        self.writers = Gauge("headgate_writers", "Writers with a control stream here", registry=registry)
        self.redis = Gauge("headgate_redis_reachable", "1 while Redis answers", registry=registry)
        self.fences = Counter(
            "headgate_fences", "Ownerships begun; many an hour are an alarm (rule R5)", table, registry=registry
        )
        self.checkpoints = Counter("headgate_checkpoints", "Checkpoints that readers see", table, registry=registry)
        self.aborts = Counter("headgate_aborts", "Aborts: checkpoints dropped, generation begun anew", table, registry=registry)
        self.alarms = Counter("headgate_alarms", "Alarms in the log", table, registry=registry)
        self.files = Counter("headgate_checkpoint_files", "Data files committed", table, registry=registry)
        self.bytes = Counter("headgate_checkpoint_bytes", "Arrow bytes committed", table, registry=registry)
        self.uncommitted = Gauge("headgate_uncommitted_bytes", "Arrow bytes taken and not committed", table, registry=registry)
        self.log_files = Gauge(
            "headgate_log_files_per_slice", "Most log files of any slice that is not stuck", table, registry=registry
        )
        self.log_bytes = Gauge(
            "headgate_log_bytes_per_slice", "Most log bytes of any slice that is not stuck", table, registry=registry
        )
        self.stretch = Gauge(
            "headgate_checkpoint_stretch",
            "How many times further apart checkpoints are while compaction is behind",
            table,
            registry=registry,
        )
        self.rate = Gauge(
            "headgate_intake_bytes_per_second",
            "Limit on intake while compaction is behind, 0 = no limit",
            table,
            registry=registry,
        )
        self.stopped = Gauge("headgate_intake_stopped", "1 while slices are full and no rows are taken", table, registry=registry)
        self.stuck = Gauge("headgate_stuck_slices", "Slices that cannot be compacted or are set aside", table, registry=registry)
        self.seconds = Histogram(
            "headgate_checkpoint_seconds", "From barrier to published", table, registry=registry, buckets=_SECONDS
        )
        self.compactors = Gauge("headgate_compactors", "Compactors with a stream here", registry=registry)
        self.compactions_running = Gauge("headgate_compactions_running", "Operations at compactors", table, registry=registry)
        self.compactions_queued = Gauge(
            "headgate_compactions_queued", "Operations that wait for a compactor or their next try", table, registry=registry
        )
        self.compactions_finished = Counter("headgate_compactions_finished", "Operations done", table, registry=registry)
        self.compactions_failed = Counter("headgate_compactions_failed", "Attempts that failed", table, registry=registry)
        self.compactions_lost = Counter(
            "headgate_compactions_lost", "Attempts whose compactor was lost", table, registry=registry
        )
        self.compactions_dropped = Counter(
            "headgate_compactions_dropped", "Operations that plans went on without; each is an alarm", table, registry=registry
        )
        self.compaction_seconds = Histogram(
            "headgate_compaction_seconds", "An operation at its compactor", table, registry=registry, buckets=_LONG_SECONDS
        )

    def for_table(self, table: str) -> "TableMetrics":
        """The series of one table."""
        return TableMetrics(self, self._labels.of(table))


class TableMetrics:
    """One table's series."""

    def __init__(self, metrics: Metrics, label: str) -> None:
        self.fences = metrics.fences.labels(label)
        self.checkpoints = metrics.checkpoints.labels(label)
        self.aborts = metrics.aborts.labels(label)
        self.alarms = metrics.alarms.labels(label)
        self.files = metrics.files.labels(label)
        self.bytes = metrics.bytes.labels(label)
        self.uncommitted = metrics.uncommitted.labels(label)
        self.log_files = metrics.log_files.labels(label)
        self.log_bytes = metrics.log_bytes.labels(label)
        self.stretch = metrics.stretch.labels(label)
        self.rate = metrics.rate.labels(label)
        self.stopped = metrics.stopped.labels(label)
        self.stuck = metrics.stuck.labels(label)
        self.seconds = metrics.seconds.labels(label)
        self.compactions_running = metrics.compactions_running.labels(label)
        self.compactions_queued = metrics.compactions_queued.labels(label)
        self.compactions_finished = metrics.compactions_finished.labels(label)
        self.compactions_failed = metrics.compactions_failed.labels(label)
        self.compactions_lost = metrics.compactions_lost.labels(label)
        self.compactions_dropped = metrics.compactions_dropped.labels(label)
        self.compaction_seconds = metrics.compaction_seconds.labels(label)
