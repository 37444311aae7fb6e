"""Keeps a table's metrics up to date with its pure core, event by event."""

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

    def record_event(self, event: Event) -> None:
        """Counts an event that the core has handled."""
        core, metrics = self._core, self._metrics
        metrics.uncommitted.set(core.uncommitted_bytes)
        metrics.aborts.inc(core.generation - self._generation)
        self._generation = core.generation
        match event:
            case events.Published():
                metrics.checkpoints.inc()
                metrics.files.inc(core.last_checkpoint.files)
                metrics.bytes.inc(core.last_checkpoint.nbytes)
                metrics.seconds.observe(core.last_checkpoint.seconds)
            case events.SliceFigures():
                self._note_pressure(event)
            case _:
                pass  # nothing else is counted

    def _note_pressure(self, figures: events.SliceFigures) -> None:
        pressure, metrics = self._core.pressure, self._metrics
        metrics.log_files.set(figures.files)
        metrics.log_bytes.set(figures.bytes)
        metrics.stretch.set(pressure.stretch)
        metrics.rate.set(pressure.rate or 0)
        metrics.stopped.set(pressure.stopped is not None)
        metrics.stuck.set(figures.stuck)
