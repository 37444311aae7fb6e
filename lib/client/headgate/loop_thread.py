"""An event loop on a thread of its own, for callers that do not have one or must not be held up by theirs."""

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar

from headgate.errors import ClosedError

Result = TypeVar("Result")
Resource = TypeVar("Resource")


class LoopThread(Generic[Resource]):
    """Runs one asynchronous resource, made and entered on its loop, until ``close`` or the interpreter's end."""

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[Resource]]) -> None:
        ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, Resource]] = Future()
        # A daemon, so that a program that forgets to close can end; the finalizer still lets the loop finish first.
        self._thread = threading.Thread(target=_run, args=(make, ready), name="headgate", daemon=True)
        self._thread.start()
        self._loop, stop, self.resource = ready.result()
        self._end = weakref.finalize(self, _end, self._thread, self._loop, stop)

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Its result, from any thread. Ctrl-C in between cancels it. Raises ClosedError."""
        if not self._end.alive:
            coroutine.close()
            raise ClosedError("the connection is closed", fix="Connect again.")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Leaves the resource and ends the thread. Idempotent."""
        self._end()


def _run(make: Callable[[], AbstractAsyncContextManager[Any]], ready: "Future[Any]") -> None:
    async def main() -> None:
        stop = asyncio.Event()
        try:
            async with make() as resource:
                ready.set_result((asyncio.get_running_loop(), stop, resource))
                await stop.wait()
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)

    asyncio.run(main())


def _end(thread: threading.Thread, loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    loop.call_soon_threadsafe(stop.set)
    if thread is not threading.current_thread():
        thread.join()
