"""What a coordinator counts for Prometheus. What is true at the moment of a scrape is in ``gauges``."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from headgate_runtime.metrics import CappedLabel

_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_LONG_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)


class Metrics:
    """All counters of the process; ``for_table`` gives one table's. ``labels``: values of the label ``table``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.labels = CappedLabel()

        def counter(name: str, text: str) -> Counter:
            return Counter(f"headgate_{name}_total", text, ["table"], registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"headgate_{name}_seconds", text, ["table"], registry=registry, buckets=buckets)

        self.fences = counter("fences", "Ownerships begun; many an hour are an alarm (rule R5)")
        self.checkpoints = counter("checkpoints", "Checkpoints that readers see")
        self.aborts = counter("aborts", "Aborts: checkpoints dropped, generation begun anew")
        self.refuted = counter("refuted_checkpoints", "Checkpoints aborted because the reports of writers did not add up")
        self.alarms_logged = counter("alarms_logged", "Alarms in the log")
        self.files = counter("committed_files", "Data files committed")
        self.bytes = counter("committed_bytes", "Arrow bytes committed")
        self.seconds = histogram("checkpoint_duration", "Checkpoint: from barrier to published", _SECONDS)
        self.operations_finished = counter("operations_finished", "Operations of compactions done")
        self.operations_dropped = counter("operations_dropped", "Operations that plans went on without; each is an alarm")
        self.attempts_failed = counter("attempts_failed", "Attempts at operations that failed")
        self.attempts_lost = counter("attempts_lost", "Attempts at operations whose compactor was lost")
        self.expired_partitions = counter("expired_partitions", "Partitions removed because they were past headgate.ttl")
        self.operation_seconds = histogram("operation_duration", "An operation at its compactor", _LONG_SECONDS)

    def for_table(self, table: str) -> "TableMetrics":
        """The series of one table."""
        return TableMetrics(self, self.labels.of(table))


class TableMetrics:
    """One table's series."""

    def __init__(self, metrics: Metrics, label: str) -> None:
        self.fences = metrics.fences.labels(label)
        self.checkpoints = metrics.checkpoints.labels(label)
        self.aborts = metrics.aborts.labels(label)
        self.refuted = metrics.refuted.labels(label)
        self.alarms_logged = metrics.alarms_logged.labels(label)
        self.files = metrics.files.labels(label)
        self.bytes = metrics.bytes.labels(label)
        self.seconds = metrics.seconds.labels(label)
        self.operations_finished = metrics.operations_finished.labels(label)
        self.operations_dropped = metrics.operations_dropped.labels(label)
        self.attempts_failed = metrics.attempts_failed.labels(label)
        self.attempts_lost = metrics.attempts_lost.labels(label)
        self.expired_partitions = metrics.expired_partitions.labels(label)
        self.operation_seconds = metrics.operation_seconds.labels(label)
