"""Waits for what a process outside of the test does, which nothing here can signal."""

import time
from collections.abc import Callable
from typing import TypeVar

from support.processes import READY_S

_Found = TypeVar("_Found")


class TimedOut(AssertionError):
    """Something did not come true in time."""


def wait_until(
    what: str | Callable[[], str],
    holds: Callable[[], _Found | None],
    timeout: float = READY_S,
    period: float = 0.05,
    not_yet: type[Exception] | tuple[type[Exception], ...] = (),
) -> _Found:
    """The first result of ``holds`` that is true; asked each ``period`` s. Errors that are ``not_yet`` count as not yet.

    Raises TimedOut after ``timeout`` s, with ``what``, or what that says then.
    """
    deadline, last = time.monotonic() + timeout, ""
    while True:
        try:
            if found := holds():
                return found
        except not_yet as error:
            last = f" ({error})"
        if time.monotonic() > deadline:
            raise TimedOut(f"{what if isinstance(what, str) else what()}: not within {timeout:.0f} s{last}")
        time.sleep(period)
