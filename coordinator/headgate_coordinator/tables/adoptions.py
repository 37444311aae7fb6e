"""Requests to adopt tables that are not served: each is done by the next try to open its table."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from headgate_coordinator.tables.requests import TableRequests
from headgate_coordinator.tables.work import RunService
from headgate_tables.errors import ReopenTable
from headgate_tables.face.owner import Table

_T = TypeVar("_T")


class PendingAdoptions:
    """At most one request of a table waits or runs. Belongs to an event loop; the requests run on other threads."""

    def __init__(self) -> None:
        self._waiting: dict[str, RunService] = {}
        self._asked: dict[str, TableRequests] = {}

    async def request_adoption(self, table: str, call: Callable[[Table], _T]) -> _T:
        """Returns the result of ``call`` once the table was opened for it. Raises what ``call`` raises, and ReopenTable when
        another adoption waits, or the table is served without one.
        """
        if table in self._waiting or table in self._asked:
            raise ReopenTable("the table is being adopted", fix="Send the same again shortly.")
        requests = self._asked[table] = TableRequests(
            asyncio.get_running_loop(), lambda work: self._waiting.update({table: work})
        )
        try:
            return await requests.call_table(call)
        finally:
            if self._asked.get(table) is requests:  # a refused one may already have a successor
                del self._asked[table]

    def take_adoption(self, table: str) -> RunService | None:
        """Removes and returns the request that waits for the table, to be run before it is owned."""
        return self._waiting.pop(table, None)

    def refuse_adoption(self, table: str) -> None:
        """Refuses the request that waits: the table is served now, or another coordinator has it. The caller has to ask again."""
        self._waiting.pop(table, None)
        if (requests := self._asked.pop(table, None)) is not None:
            requests.refuse_all()
