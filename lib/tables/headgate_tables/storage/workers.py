"""One function over many files at once, on the calling thread and a few more; and one beside what the caller goes on to do."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

from headgate_tables.errors import SyncFailedError

THREADS = 32
"""Helpers of all stores of the process together, begun when they are first needed. More: more requests under way at once, and
memory for each. A coordinator has a store for every table, so they cannot have threads of their own.
"""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


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


def beside(name: str, work: Callable[[], _Result]) -> Future[_Result]:
    """Does ``work`` on a thread of its own, which is named and ends with it."""
    thread = ThreadPoolExecutor(1, thread_name_prefix=name)
    result = thread.submit(work)
    thread.shutdown(wait=False)
    return result


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="headgate-store")
