"""A lock of threads that knows whether its thread has it."""

import _thread
from collections.abc import Callable
from typing import ClassVar

from headgate.errors import InsideCallError


class OwnedLock(_thread.RLock):  # type: ignore[misc]
    """Re-entrant, so that to ask for it in a signal's handler does not wait for the call that the handler interrupts."""

    is_here: ClassVar[Callable[["OwnedLock"], bool]] = _thread.RLock._is_owned  # type: ignore[attr-defined]
    """Whether this thread has the lock. It is asked for each row."""

    def check_not_here(self) -> None:
        """Raises InsideCallError where this thread has the lock: in a signal's handler, or a finalizer, that interrupts it."""
        if self.is_here():
            raise InsideCallError(
                "this call interrupts another one of the same thread, which has not ended",
                fix="Raise KeyboardInterrupt or SystemExit in the signal's handler, and make the call where that is caught.",
            )
