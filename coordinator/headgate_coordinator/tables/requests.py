"""Requests to a table's handle from outside of checkpoints: they go through the committer's queue, and futures answer them."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from headgate_coordinator.tables.work import RunService
from headgate_tables.errors import ReopenTable
from headgate_tables.face.owner import Table

_T = TypeVar("_T")
_Answers: TypeAlias = set[asyncio.Future[Any]]


class TableRequests:
    """Belongs to an event loop. ``put`` hands work to the committer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, put: Callable[[RunService], None]) -> None:
        self._loop = loop
        self._put = put
        self._waiting: _Answers = set()
        self._queued: _Answers = set()
        """Of those, what the committer takes from its queue."""
        self._over = False

    async def call_table(self, call: Callable[[Table], _T]) -> _T:
        """Returns the result of ``call``, which runs on the committer's thread between two slots, even if the caller stops
        waiting.

        Raises what ``call`` raises; ReopenTable when the ownership ends first.
        """
        work, answer = self.new_request(call)
        if not self._over:
            self._queued.add(answer)
            answer.add_done_callback(self._queued.discard)
            self._put(work)
        return await answer

    def new_request(self, call: Callable[[Table], _T]) -> "tuple[RunService, asyncio.Future[_T]]":
        """Returns work for the committer, which the caller hands over, and the future of its answer."""
        answer: asyncio.Future[_T] = self._loop.create_future()
        if self._over:
            answer.set_exception(_gone())
        else:
            self._waiting.add(answer)
            answer.add_done_callback(self._waiting.discard)

        def settle(answer_it: Callable[[], None]) -> None:
            """Called on the loop. The caller may have stopped waiting."""
            if not answer.done():
                answer_it()

        def call_and_answer(table: Table) -> None:
            result = call(table)
            self._call_soon(lambda: settle(lambda: answer.set_result(result)))

        def fail(error: BaseException) -> None:
            self._call_soon(lambda: settle(lambda: answer.set_exception(error)))

        return RunService(call_and_answer, fail), answer

    def refuse_queued(self) -> None:
        """Refuses what waits in the committer's queue, which it takes nothing from any more, and all requests that come."""
        self._over = True
        _refuse(self._queued)

    def refuse_all(self) -> None:
        """Refuses all requests, because the ownership has ended."""
        self._over = True
        _refuse(self._waiting)

    def _call_soon(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, so no caller waits
            self._loop.call_soon_threadsafe(call)


def _refuse(answers: _Answers) -> None:
    for answer in list(answers):
        if not answer.done():
            answer.set_exception(_gone())


def _gone() -> ReopenTable:
    return ReopenTable("the table is changing hands", fix="Send the same again shortly.")
