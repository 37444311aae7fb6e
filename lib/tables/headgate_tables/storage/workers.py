"""Work on several threads: one function over many files, two requests that do not depend on each other, and one beside what the
caller goes on to do.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

from headgate_tables.errors import SyncFailedError
from headgate_tables.storage.store import Store

THREADS = 32
"""Helpers of all stores of the process together, begun when they are first needed. More: more requests under way at once, and
memory for each. A coordinator has a store for every table, so they cannot have threads of their own.
"""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Other = TypeVar("_Other")


class Workers:
    """At most ``size`` files under way at once per call. The calling thread works too, so a busy pool blocks no call."""

    def __init__(self, size: int) -> None:
        self._helpers = size - 1

    def map(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """The results in the items' order. After an error no further item is begun; it is raised when the others have ended,
        a SyncFailedError before any other.

        No thread keeps an item or a result of it afterwards: they may be the files of a whole chunk. A helper that is done keeps
        ``work`` until it gets the processor again, and a cancelled one until a thread of the pool is free.
        """
        if len(items) < 2:
            return [function(item) for item in items]
        todo = deque(enumerate(items))
        results: dict[int, _Result] = {}

        def work() -> None:
            while True:
                try:
                    index, item = todo.popleft()
                except IndexError:
                    return
                try:
                    results[index] = function(item)
                except BaseException:
                    todo.clear()
                    raise

        helpers = [_pool().submit(work) for _ in range(min(self._helpers, len(items) - 1))]
        errors: list[BaseException | None] = []
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised below, unless a helper met with something worse
            errors.append(error)
        finally:
            started = [helper for helper in helpers if not helper.cancel()]
            wait(started)
        errors += [helper.exception() for helper in started]
        if met := [error for error in errors if error is not None]:
            # What a failed sync means must not be lost behind a full disk (hazard H14).
            raise next((error for error in met if isinstance(error, SyncFailedError)), met[0])
        return [results.pop(index) for index in range(len(items))]


def both(store: Store, first: Callable[[], _Result], second: Callable[[], _Other]) -> tuple[_Result, _Other]:
    """The results of two pieces of work on ``store`` that do not depend on each other. At once on an object store, where each
    request waits for its answer; one after the other on a disk. ``second`` only reads: its errors may be lost.

    Raises what the first one raises before what the second one does. Both have ended when this returns or raises.
    """
    if store.stages:
        return first(), second()
    other = _pool().submit(second)
    try:
        result = first()
    finally:
        if not (late := other.cancel()):
            wait([other])
    return result, second() if late else other.result()


def beside(name: str, work: Callable[[], _Result]) -> Future[_Result]:
    """Does ``work`` on a thread of its own, which is named and ends with it."""
    thread = ThreadPoolExecutor(1, thread_name_prefix=name)
    result = thread.submit(work)
    thread.shutdown(wait=False)
    return result


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="headgate-store")
