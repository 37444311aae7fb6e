"""That a checkpoint goes on, told to the owner now and then: it gives up one of which it hears nothing for checkpoint_timeout."""

from collections.abc import Callable
from typing import Final

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.world import Clock

EVERY_S: Final = 0.5
"""At most so often: far below any checkpoint_timeout, and a few bytes a second."""


class ProgressReporter:
    """Of one half of a writer, for one table."""

    def __init__(self, clock: Clock, report: Callable[[wire.Progress], None]) -> None:
        self._clock = clock
        self._report = report
        self._checkpoint = 0
        self._reported_at = 0.0

    def report_progress(self, checkpoint: int) -> None:
        """Rows of the checkpoint were handed on, or written."""
        now = self._clock.monotonic()
        if checkpoint != self._checkpoint or now - self._reported_at >= EVERY_S:
            self._checkpoint, self._reported_at = checkpoint, now
            self._report(wire.Progress(checkpoint=checkpoint))
