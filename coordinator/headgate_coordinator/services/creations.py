"""Limits what creations of tables cost everybody else: reading a schema holds the interpreter for milliseconds."""

import contextlib
import math
from collections.abc import AsyncIterator, Iterator
from typing import Final

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.call_limiter import CallLimiter
from headgate_runtime.caller_rates import CallerRates
from headgate_runtime.errors import RpcError, rpc_error
from headgate_runtime.turns import Turns
from headgate_runtime.world import Clock

AT_ONCE: Final = 64
"""Creations under way, each with a request of up to 512 KiB."""
_FREE_REFUSALS: Final = 10
_LONGEST_S: Final = 5.0


class Creations:
    """Of one coordinator. ``refusals``: a second, of one caller, besides the first ten. Each takes up to 30 ms of the process,
    with a schema of 2,000 columns.
    """

    def __init__(self, clock: Clock, refusals: float) -> None:
        self._rate = refusals
        self._calls = CallLimiter(AT_ONCE)
        self._refusals = CallerRates(clock, _FREE_REFUSALS, refusals, _LONGEST_S)
        self._reading = Turns()

    @contextlib.contextmanager
    def counted(self, caller: str) -> Iterator[None]:
        """Around a whole creation. Raises RpcError (CODE_OVERLOADED) when it would be one too many."""
        with self._calls.counted(caller):
            try:
                yield
            except RpcError as refused:
                if refused.error.action == errors_pb2.ACTION_FIX_CALL and refused.error.code != errors_pb2.CODE_TABLE_EXISTS:
                    self._refusals.count(caller)
                raise

    @contextlib.asynccontextmanager
    async def reading(self, caller: str) -> AsyncIterator[None]:
        """Around the reading of a schema, one at a time: each thread that computes holds up every step of the event loop by 5 ms.

        Raises RpcError (CODE_OVERLOADED) when creations of this caller were refused too often, so nobody waits for more of them.
        """
        async with self._reading.turn(caller):
            if (delay := self._refusals.delay(caller)) > 0:
                raise _too_often(self._rate, delay)
            yield


def _too_often(rate: float, delay: float) -> RpcError:
    return rpc_error(
        errors_pb2.CODE_OVERLOADED,
        f"more than {rate:g} creations of tables a second were refused, of this caller",
        f"Correct what they ask for, and send the same again in {delay:.1f} s.",
        retry_after_ms=math.ceil(1_000 * delay),
    )
