"""Places for callers whom nothing tells apart: the newest ones have them, so that those who stay keep nobody out."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.errors import rpc_error


class Newest:
    """``places`` at once. One more ends the turn of the oldest."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._turns: list[asyncio.Timeout] = []

    @contextlib.asynccontextmanager
    async def turn(self, seconds: float | None) -> AsyncIterator[None]:
        """Runs the block. Raises RpcError (CODE_OVERLOADED) when it takes longer than ``seconds``, or a newer one comes."""
        if len(self._turns) == self._places:
            oldest = self._turns.pop(0)
            if not oldest.expired():  # its block has yet to hear of it, and it cannot be ended twice
                oldest.reschedule(asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(seconds) as turn:
                self._turns.append(turn)
                try:
                    yield
                finally:
                    if turn in self._turns:
                        self._turns.remove(turn)
        except TimeoutError:
            raise rpc_error(
                errors_pb2.CODE_OVERLOADED, "the request did not arrive in time, or newer ones came", "Send the same again."
            ) from None
