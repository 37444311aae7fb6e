"""Requests to a table's handle from outside of checkpoints: they go through the committer's queue, and futures answer them."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from headgate_coordinator.tables.work import RunService
from headgate_tables.errors import OutcomeUnknownError, ReopenTable
from headgate_tables.face.owner import Table

_T = TypeVar("_T")


@dataclass(eq=False, slots=True)
class _Waiting:
    """``queued``: the committer takes it from its queue. ``begun``: set by its thread."""

    answer: asyncio.Future[Any]
    queued: bool = False
    begun: bool = False

    def refuse(self, error: ReopenTable) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class TableRequests:
    """Belongs to an event loop. ``put`` hands work to the committer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, put: Callable[[RunService], None]) -> None:
        self._loop = loop
        self._put = put
        self._waiting: dict[object, _Waiting] = {}
        self._over = False

    async def call_table(self, call: Callable[[Table], _T]) -> _T:
        """Returns the result of ``call``, which runs on the committer's thread between two slots, even if the caller stops
        waiting.

        Raises what ``call`` raises; ReopenTable when the ownership ends first, which is OutcomeUnknownError when it has begun.
        """
        work, answer = self.new_request(call)
        if not self._over:
            self._waiting[answer].queued = True
            self._put(work)
        return await answer

    def new_request(self, call: Callable[[Table], _T]) -> "tuple[RunService, asyncio.Future[_T]]":
        """Returns work for the committer, which the caller hands over, and the future of its answer."""
        answer: asyncio.Future[_T] = self._loop.create_future()
        request = _Waiting(answer)
        if self._over:
            request.refuse(_gone())
        else:
            self._waiting[answer] = request
            answer.add_done_callback(self._waiting.pop)

        def settle(answer_it: Callable[[], None]) -> None:
            """Called on the loop. The caller may have stopped waiting."""
            if not answer.done():
                answer_it()

        def call_and_answer(table: Table) -> None:
            request.begun = True
            result = call(table)
            self._call_soon(lambda: settle(lambda: answer.set_result(result)))

        def fail(error: BaseException) -> None:
            self._call_soon(lambda: settle(lambda: answer.set_exception(error)))

        return RunService(call_and_answer, fail), answer

    def refuse_queued(self) -> None:
        """Refuses what waits in the committer's queue, which it takes nothing from any more, and all requests that come."""
        self._over = True
        for request in list(self._waiting.values()):
            if request.queued and not request.begun:
                request.refuse(_gone())

    def refuse_all(self) -> None:
        """Refuses all requests, because the ownership has ended. Of one that has begun nobody knows whether it will be done: what
        is on its way to the store cannot be stopped.
        """
        self._over = True
        for request in list(self._waiting.values()):
            request.refuse(_may_be_done() if request.begun else _gone())

    def _call_soon(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, so no caller waits
            self._loop.call_soon_threadsafe(call)


def _gone() -> ReopenTable:
    return ReopenTable("the table is changing hands", fix="Send the same again shortly.")


def _may_be_done() -> ReopenTable:
    return OutcomeUnknownError("the table changed hands meanwhile", fix="Look at the table before you send the same again.")
