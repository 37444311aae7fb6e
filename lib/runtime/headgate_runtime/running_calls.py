"""Calls that a server is serving: gRPC's server stops without waiting for those that it has cut off."""

import asyncio

import structlog

LONGEST_UNWINDING_S = 5.0
"""Calls that are cut off have this long to end. Higher: a call that never does holds the process up for longer."""

_log = structlog.get_logger()


class RunningCalls:
    """The tasks that serve calls, of all servers of a process."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def add(self) -> None:
        """Called in gRPC's task of a call, before the call is served."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - gRPC serves each call in a task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait(self) -> None:
        """Returns when all have ended, or have had their time. New calls are refused already."""
        if not self._tasks:
            return
        _, hanging = await asyncio.wait(self._tasks, timeout=LONGEST_UNWINDING_S)
        if hanging:
            _log.warning("calls that were cut off do not end", calls=len(hanging))
