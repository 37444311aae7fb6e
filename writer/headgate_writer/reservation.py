"""Bytes of one table that are on their way from clients, counted in the budgets of the process."""

from __future__ import annotations

from collections.abc import Sequence

from headgate_writer.buffers import MemoryBudget


class Reservation:
    """Counts in all ``budgets``."""

    def __init__(self, budgets: Sequence[MemoryBudget]) -> None:
        self._budgets = budgets
        self._nbytes = 0
        self._closed = False

    def add(self, nbytes: int) -> None:
        """Reserves bytes that have come."""
        if self._closed:
            return
        self._nbytes += nbytes
        for budget in self._budgets:
            budget.reserve(nbytes)

    def free(self, nbytes: int) -> None:
        """Gives bytes back that ``add`` has reserved."""
        self.add(-nbytes)

    def close(self) -> None:
        """Gives all back. What is counted from now on is nothing: a turn that is cancelled may come to its end before that."""
        self.free(self._nbytes)
        self._closed = True
