"""Whose a CancelledError is: this task's, or that of a call whose channel was closed, which grpcio shows in the same way."""

import asyncio


def is_cancelled() -> bool:
    """Whether this task was cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def raise_if_cancelled() -> None:
    """Raises CancelledError if this task was cancelled: errors of calls and of task groups can hide that, or look the same.

    Until Python 3.13 a task group that ends with an error swallows the cancel, and the task would go on for ever.
    """
    if is_cancelled():
        raise asyncio.CancelledError
