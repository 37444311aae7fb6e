"""A thread pool in which one kind of error ends the process, even if no task awaits the result."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NoReturn, ParamSpec, TypeVar

import structlog

_log = structlog.get_logger()
_P = ParamSpec("_P")
_T = TypeVar("_T")


class FailStopThreads(ThreadPoolExecutor):
    """``fatal``: the error that ends the process (hazard H14: after a failed sync, its data cannot be trusted). After the first
    such error no work returns a result, not even work that was under way. Make it on the event loop on which ``failed`` is
    awaited.
    """

    def __init__(self, size: int, name: str, fatal: type[Exception]) -> None:
        super().__init__(size, name)
        self._name = name
        self._fatal = fatal
        self._first: Exception | None = None
        self._loop = asyncio.get_running_loop()
        self._has_failed = asyncio.Event()

    def submit(self, work: Callable[_P, _T], /, *arguments: _P.args, **named: _P.kwargs) -> Future[_T]:
        """As of any executor; after the first fatal error, futures have that error instead of their result."""
        return super().submit(self._run, work, *arguments, **named)

    async def failed(self) -> NoReturn:
        """Waits for the first fatal error, also of work whose result no task awaits, and raises it."""
        await self._has_failed.wait()
        assert self._first is not None  # noqa: S101 - set before the event
        raise self._first

    def end(self) -> None:
        """Waits for work under way. Raises the first fatal error, which cancelled tasks did not wait for."""
        self.shutdown()
        if self._first is not None:
            raise self._first

    def _run(self, work: Callable[_P, _T], /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        if self._first is not None:
            raise self._first
        try:
            result = work(*arguments, **named)
        except self._fatal as error:
            if self._first is None:
                self._first = error
                _log.critical("this process ends: its data cannot be trusted", threads=self._name, error=str(error))
                self._loop.call_soon_threadsafe(self._has_failed.set)
            raise
        if self._first is not None:
            raise self._first
        return result
