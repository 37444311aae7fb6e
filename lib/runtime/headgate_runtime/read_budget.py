"""Memory for requests that are being received: reserved before gRPC reads them, shared out among callers."""

import asyncio
import contextlib
import itertools
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.errors import rpc_error

_SHARE: Final = 2
"""One caller holds at most this part of the budget, so that its slow requests keep nobody else waiting."""


@dataclass(eq=False, slots=True)
class _Waiting:
    """``number``: those that began to wait before have smaller ones."""

    number: int
    caller: str
    nbytes: int
    turn: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class ReadBudget:
    """``total`` bytes, for which a caller waits ``seconds`` at most.

    Of those that wait, the caller that holds least is next; a large request is not overtaken for ever. A thousand that wait cost
    the next one nothing.
    """

    def __init__(self, total: int, seconds: float) -> None:
        self._total = total
        self._seconds = seconds
        self._by_caller: Counter[str] = Counter()
        self._used = 0
        self._numbers = itertools.count()
        self._waiting: defaultdict[str, deque[_Waiting]] = defaultdict(deque)
        """By caller, without those of whom none waits."""

    @property
    def used(self) -> int:
        """Bytes that are reserved now."""
        return self._used

    @contextlib.asynccontextmanager
    async def reserved(self, caller: str, nbytes: int) -> AsyncIterator[None]:
        """Has ``nbytes`` while the block runs. Raises RpcError (CODE_OVERLOADED) if it is not the caller's turn in time."""
        await self.reserve(caller, nbytes)
        try:
            yield
        finally:
            self.free(caller, nbytes)

    async def reserve(self, caller: str, nbytes: int, *, patient: bool = False) -> None:
        """Returns when ``nbytes`` are the caller's, to be given back with ``free``.

        Raises as ``reserved`` does; a ``patient`` caller waits as long as it takes.
        """
        waiting = _Waiting(next(self._numbers), caller, nbytes)
        self._waiting[caller].append(waiting)
        self._share_out()
        try:
            async with asyncio.timeout(None if patient else self._seconds):
                await waiting.turn
        except BaseException as error:
            if self._remove(waiting):
                self._share_out()
            else:
                self.free(caller, nbytes)
            if isinstance(error, TimeoutError):
                raise _overloaded(self._seconds) from None
            raise

    def free(self, caller: str, nbytes: int) -> None:
        """Gives back what ``reserve`` has given."""
        self._used -= nbytes
        self._by_caller[caller] -= nbytes
        if not self._by_caller[caller]:
            del self._by_caller[caller]
        self._share_out()

    def _share_out(self) -> None:
        while allowed := [queue[0] for queue in self._waiting.values() if self._is_in_share(queue[0])]:
            following = min(allowed, key=lambda each: (self._by_caller[each.caller], each.number))
            if self._used and self._used + following.nbytes > self._total:
                return
            self._remove(following)
            self._used += following.nbytes
            self._by_caller[following.caller] += following.nbytes
            # A caller that has gone frees it again, in ``reserve``.
            if not following.turn.done():
                following.turn.set_result(None)

    def _remove(self, waiting: _Waiting) -> bool:
        """False if it does not wait any more."""
        queue = self._waiting.get(waiting.caller)
        if queue is None or waiting not in queue:
            return False
        queue.remove(waiting)
        if not queue:
            del self._waiting[waiting.caller]
        return True

    def _is_in_share(self, waiting: _Waiting) -> bool:
        used = self._by_caller[waiting.caller]
        return not used or used + waiting.nbytes <= self._total // _SHARE


def _overloaded(seconds: float) -> Exception:
    return rpc_error(
        errors_pb2.CODE_OVERLOADED,
        f"the memory for requests was in use for {seconds:g} s",
        "Send the same again later, and fewer requests at once.",
    )
