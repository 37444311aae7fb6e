"""Freshness: seconds from sending to queryable, and until rows flow again after a kill."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Moments = Sequence[tuple[float, int]]
"""Pairs of moment and offset; both grow."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One producer's run. ``sent``: each batch when it was sent; ``seen``: each growth of the queryable offset.

    Both may grow while they are asked about.
    """

    sent: Moments
    seen: Moments

    def waits(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """For each queryable batch: when it was sent, and the seconds until it was queryable."""
        sent, offsets = _columns(self.sent)
        seen, reached = _columns(self.seen)
        at = np.searchsorted(reached, offsets, side="left")
        known = at < len(reached)
        return sent[known], seen[at[known]] - sent[known]

    def back_after(self, kill: float) -> float | None:
        """Seconds from a kill until the first batch sent after it was queryable; None if none was."""
        sent, waits = self.waits()
        later = sent >= kill
        return float(sent[later][0] + waits[later][0] - kill) if later.any() else None


def percentile(traces: Sequence[Trace], percent: float, since: float, until: float) -> float | None:
    """The percentile of the waits of all batches sent in the span; None without any."""
    parts = [(sent, waits) for sent, waits in (trace.waits() for trace in traces)]
    chosen = np.concatenate([waits[(sent >= since) & (sent < until)] for sent, waits in parts])
    return float(np.percentile(chosen, percent)) if len(chosen) else None


def _columns(moments: Moments) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    known = tuple(moments)  # read once: a producer that is still at work adds to its own
    return np.array([moment for moment, _ in known], dtype=np.float64), np.array([offset for _, offset in known], dtype=np.int64)
