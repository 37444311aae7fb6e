"""Waiting for a table that other processes compact."""

import time
from collections.abc import Callable

from headgate_tables.hudi import Table, open_table
from support.processes import READY_S


def until(url: str, wanted: Callable[[Table], bool], timeout: float = READY_S) -> Table:
    """Opens the table again and again. Raises TimeoutError."""
    deadline = time.monotonic() + timeout
    while not wanted(found := open_table(url)):
        if time.monotonic() > deadline:
            raise TimeoutError(str(found.commits()[-5:]))
        time.sleep(0.1)  # nothing tells a reader of a commit
    return found


def compactions(table: Table) -> int:
    """How many are completed."""
    return sum(commit.action == "commit" for commit in table.commits())
