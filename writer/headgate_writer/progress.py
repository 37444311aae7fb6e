"""Reports to the owner that a checkpoint goes on: without a report it aborts the checkpoint after checkpoint_timeout."""

from collections.abc import Callable
from typing import Final

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.world import Clock

EVERY_S: Final = 0.5
"""Seconds between two reports, at least: far below any checkpoint_timeout, and a few bytes a second."""


class ProgressReporter:
    """For one table, and one of the two halves of a writer."""

    def __init__(self, clock: Clock, report: Callable[[wire.Progress], None]) -> None:
        self._clock = clock
        self._report = report
        self._checkpoint = 0
        self._reported_at = 0.0

    def report_progress(self, checkpoint: int) -> None:
        """Call it when rows of the checkpoint were passed on or written. Reports at most every ``EVERY_S``."""
        now = self._clock.monotonic()
        if checkpoint != self._checkpoint or now - self._reported_at >= EVERY_S:
            self._checkpoint, self._reported_at = checkpoint, now
            self._report(wire.Progress(checkpoint=checkpoint))
