"""A limit on async tests: one that waits for ever fails and says where its tasks stand, not only where its threads do."""

import asyncio
import functools
import inspect
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

LIMIT_S = 480.0
"""Less than pytest's faulthandler_timeout, which ends the whole worker and knows nothing of tasks."""


def limit_async_tests(items: list[pytest.Item], limit_s: float = LIMIT_S) -> None:
    """Gives each coroutine test the limit. An ``asyncio.timeout`` in a fixture is none: it cancels the fixture's own task."""
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            item.obj = limited(item.obj, limit_s)


def limited(test: Callable[..., Awaitable[None]], limit_s: float) -> Callable[..., Awaitable[None]]:
    """The test, which raises TimeoutError after ``limit_s`` seconds, once stderr has got where its tasks stand."""

    @functools.wraps(test)
    async def run(*args: Any, **kwargs: Any) -> None:
        loop = asyncio.get_running_loop()
        watch = loop.call_later(limit_s, print_tasks)
        try:
            async with asyncio.timeout(limit_s):
                await test(*args, **kwargs)
        finally:
            watch.cancel()

    return run


async def ended(task: "asyncio.Task[None]", limit_s: float = LIMIT_S / 2) -> None:
    """Returns when the task has ended, however it ended. Raises TimeoutError, once stderr has got where all tasks stand."""
    await asyncio.wait([task], timeout=limit_s)
    if not task.done():
        print_tasks()
        raise TimeoutError(f"{task.get_name()} has not ended within {limit_s:.0f} s")


def print_tasks() -> None:
    """Prints to stderr where each task of the running loop stands."""
    print("what every task waits for:", file=sys.stderr)
    for task in asyncio.all_tasks():
        print(f"{task.get_name()}:", *_awaiting(task.get_coro()), sep="\n  ", file=sys.stderr)


def _awaiting(coroutine: Any) -> list[str]:
    """The lines at which it waits, outermost first. A task's own stack has only the outermost one."""
    lines = []
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}")
        coroutine = coroutine.cr_await
    return lines
