"""A thread pool in which one kind of error ends the process, even if no task waits for the result."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NoReturn, ParamSpec, TypeVar

import structlog

_log = structlog.get_logger()
_P = ParamSpec("_P")
_T = TypeVar("_T")


class Threads(ThreadPoolExecutor):
    """``fatal``: what ends the process (hazard H14: after a failed sync nothing of it may be trusted). After the first such error
    no work brings a result any more, what was under way then neither. Made on the event loop that ``failed`` is awaited on.
    """

    def __init__(self, size: int, name: str, fatal: type[Exception]) -> None:
        super().__init__(size, name)
        self._name = name
        self._fatal = fatal
        self._first: Exception | None = None
        self._loop = asyncio.get_running_loop()
        self._told = asyncio.Event()

    def submit(self, work: Callable[_P, _T], /, *arguments: _P.args, **named: _P.kwargs) -> Future[_T]:
        """As of any executor; the future has the first fatal error instead of what is not to be trusted."""
        return super().submit(self._run, work, *arguments, **named)

    async def failed(self) -> NoReturn:
        """Waits for the first fatal error, also of work whose result no task awaits, and raises it."""
        await self._told.wait()
        assert self._first is not None  # noqa: S101 - set before the event
        raise self._first

    def end(self) -> None:
        """Waits for what is under way. Raises the first fatal error, which those who were cancelled did not wait for."""
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
                _log.critical("this process ends: nothing that it wrote may be trusted", threads=self._name, error=str(error))
                self._loop.call_soon_threadsafe(self._told.set)
            raise
        if self._first is not None:
            raise self._first
        return result
