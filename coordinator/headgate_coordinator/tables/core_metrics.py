"""Counts what a table's pure core decides, event by event."""

from headgate_coordinator.core import events
from headgate_coordinator.core.events import Event
from headgate_coordinator.core.table_coordinator import TableCoordinator
from headgate_coordinator.metrics import TableMetrics


class CoreMetrics:
    """The metrics of one ownership."""

    def __init__(self, core: TableCoordinator, metrics: TableMetrics) -> None:
        self._core = core
        self._metrics = metrics
        self._generation = core.generation
        self._refuted = core.refuted

    def record_event(self, event: Event) -> None:
        """Counts an event that the core has handled."""
        core, metrics = self._core, self._metrics
        metrics.aborts.inc(core.generation - self._generation)
        metrics.refuted.inc(core.refuted - self._refuted)
        self._generation, self._refuted = core.generation, core.refuted
        if isinstance(event, events.Published):
            metrics.checkpoints.inc()
            metrics.files.inc(core.commits.last.files)
            metrics.bytes.inc(core.commits.last.nbytes)
            metrics.seconds.observe(core.commits.last.seconds)
