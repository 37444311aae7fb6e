"""An event loop on a thread of its own, for callers that have none or must not block theirs."""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

from headgate.errors import ClosedError, HeadgateError, connection_closed
from headgate.owned_lock import OwnedLock

Result = TypeVar("Result")
Resource = TypeVar("Resource")
_FORK = "Connect after the fork, or start processes with `spawn`, as multiprocessing.get_context can."
_open: set[tuple[int, threading.Thread]] = set()
"""With the process of each. Those of a parent are there in its forks, too, for good."""
_Ready = tuple[asyncio.AbstractEventLoop, asyncio.Event, Resource]


class LoopThread(Generic[Resource]):
    """Owns one asynchronous resource, created and entered on its loop, until ``close`` or the end of the interpreter."""

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[Resource]]) -> None:
        self._process = os.getpid()
        if any(process != self._process for process, _ in _open.copy()):
            # gRPC's threads are not here either, and it does not start them again: calls would wait until their timeout.
            raise ClosedError("this process was forked from one that was connected, and gRPC works only there", fix=_FORK)
        ready: Future[_Ready[Resource]] = Future()
        # A daemon thread lets a program end that forgot to close; the finalizer still lets the loop finish first.
        self._thread = threading.Thread(target=_run, args=(make, ready), name="headgate", daemon=True)
        self._thread.start()
        self._loop, stop, self.resource = ready.result()
        _open.add((self._process, self._thread))
        # Re-entrant: a signal's handler may close the connection, unless it interrupts what has one of the locks.
        self._gate = threading.RLock()
        self._locks: weakref.WeakSet[OwnedLock] = weakref.WeakSet()
        self._end = weakref.finalize(self, _end, self._process, self._gate, self._thread, self._loop, stop)

    @property
    def is_here(self) -> bool:
        """Whether the thread runs in this process. A fork has a copy of everything but the thread, so that nothing is sent."""
        return os.getpid() == self._process

    def check_is_here(self) -> None:
        """Raises ClosedError in a process that was forked from the thread's."""
        if not self.is_here:
            raise ClosedError("the connection belongs to the parent process", fix=_FORK)

    def shares(self, lock: OwnedLock) -> None:
        """The loop waits for this lock, too: a thread that has it must not wait for the loop."""
        with self._gate:
            self._locks.add(lock)

    def _check_no_lock_is_here(self) -> None:
        with self._gate:
            locks = [*self._locks]
        for lock in locks:
            lock.check_not_here()

    def run(self, coroutine: Coroutine[object, None, Result]) -> Result:
        """The coroutine's result; callable from any thread. Ctrl-C cancels the coroutine. Raises ClosedError, InsideCallError."""
        try:
            self.check_is_here()
            self._check_no_lock_is_here()
            with self._gate:  # behind its end the loop would take the coroutine and never run it
                if not self._end.alive:
                    raise connection_closed()
                future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except HeadgateError:
            coroutine.close()
            raise
        try:
            return future.result()
        except CancelledError:
            raise connection_closed() from None  # nothing else ends a coroutine from outside
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Leaves the resource and ends the thread. Idempotent. Raises InsideCallError."""
        self._check_no_lock_is_here()
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


def _end(
    process: int, gate: threading.RLock, thread: threading.Thread, loop: asyncio.AbstractEventLoop, stop: asyncio.Event
) -> None:
    if os.getpid() != process:
        return  # the parent's own: a fork shares the socket by which its loop is woken
    with gate:
        loop.call_soon_threadsafe(stop.set)
    if thread is not threading.current_thread():
        thread.join()
    _open.discard((process, thread))
