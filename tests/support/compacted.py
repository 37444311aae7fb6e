"""Waiting for a table that other processes compact."""

import time
from collections.abc import Callable

from headgate_tables.hudi import Table


def until(table: Callable[[], Table], wanted: Callable[[Table], bool], timeout: float = 60) -> Table:
    """Opens it again and again. Raises TimeoutError."""
    deadline = time.monotonic() + timeout
    while not wanted(found := table()):
        if time.monotonic() > deadline:
            raise TimeoutError(str(found.commits()[-5:]))
        time.sleep(0.1)
    return found


def compactions(table: Table) -> int:
    return sum(commit.action == "commit" for commit in table.commits())
