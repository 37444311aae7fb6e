"""An event loop on a thread of its own, for callers that have none or must not block theirs."""

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

from headgate.errors import ClosedError

Result = TypeVar("Result")
Resource = TypeVar("Resource")
_Ready = tuple[asyncio.AbstractEventLoop, asyncio.Event, Resource]


class LoopThread(Generic[Resource]):
    """Owns one asynchronous resource, created and entered on its loop, until ``close`` or the end of the interpreter."""

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[Resource]]) -> None:
        ready: Future[_Ready[Resource]] = Future()
        # A daemon thread lets a program end that forgot to close; the finalizer still lets the loop finish first.
        self._thread = threading.Thread(target=_run, args=(make, ready), name="headgate", daemon=True)
        self._thread.start()
        self._loop, stop, self.resource = ready.result()
        self._end = weakref.finalize(self, _end, self._thread, self._loop, stop)

    def run(self, coroutine: Coroutine[object, None, Result]) -> Result:
        """The coroutine's result; callable from any thread. Ctrl-C cancels the coroutine. Raises ClosedError."""
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


def _run(make: Callable[[], AbstractAsyncContextManager[Resource]], ready: "Future[_Ready[Resource]]") -> None:
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
