"""Calls to whichever coordinator answers: any of them answers for every table."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from google.protobuf.message import Message
from grpc import aio

from headgate.errors import InvalidArgumentError, UnavailableError
from headgate.system import System
from headgate.transport import Failure, Transport, failure_of_status
from headgate_proto.api.v1 import errors_pb2 as wire
from headgate_proto.api.v1 import tables_pb2, tables_pb2_grpc

Answer = TypeVar("Answer")
Method = Callable[["tables_pb2_grpc.TableServiceAsyncStub"], Callable[..., Awaitable[Answer]]]
"""Chooses a call: ``lambda stub: stub.Status``."""

_CALL_SECONDS = 10.0
"""Deadline of one attempt. Creating a table on a slow store takes about 1 s."""
_FIND_SECONDS = 2.0
"""Deadline of one question for writers: it is answered from memory, and a stopped coordinator must not hold up a channel."""
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 1.0
_REDIRECTS = 4


class Backoff:
    """Pauses that double from 0.1 to 1 s, each anywhere between nothing and all of it, so that clients spread out."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._attempt = 0

    def reset(self) -> None:
        """After something has worked."""
        self._attempt = 0

    async def pause(self, at_least: float = 0.0) -> None:
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self._attempt, 10))
        self._attempt += 1
        await self._system.clock.sleep(at_least + longest * self._system.randomness.random())


class CallFailedError(Exception):
    """Internal: one attempt failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


class Coordinators:
    """``TableService`` at several addresses; the one that answered last is asked first."""

    def __init__(self, addresses: Sequence[str], transport: Transport, system: System) -> None:
        self._addresses = list(addresses)
        self._transport = transport
        self._system = system

    async def call(self, method: Method[Answer], request: Callable[[bool], Message], timeout: float) -> Answer:
        """Repeats until a coordinator answers. ``request`` is told whether an earlier attempt may have been carried out.

        Raises what the coordinator answers; UnavailableError after ``timeout`` seconds.
        """
        return await self.until(lambda maybe_done: self.once(method, request(maybe_done)), timeout)

    async def until(self, attempt: Callable[[bool], Awaitable[Answer]], timeout: float, *, patient: bool = False) -> Answer:
        """Repeats ``attempt`` for as long as its CallFailedError says so; it is told whether an earlier one may have been done.

        ``patient``: an attempt may take any time, once somebody works on it; only new ones are not made any more.
        Raises what a coordinator answers; UnavailableError after ``timeout`` seconds.
        """
        backoff = Backoff(self._system)
        maybe_done = False
        last: Failure | None = None
        try:
            async with asyncio.timeout(timeout) as deadline:
                end = deadline.when()
                while True:
                    try:
                        deadline.reschedule(None if patient else end)
                        return await attempt(maybe_done)
                    except CallFailedError as error:
                        last = error.failure
                        if last.action not in (wire.ACTION_RETRY, wire.ACTION_RESUME):
                            raise last.error from None
                        maybe_done = maybe_done or last.unknown_outcome
                        deadline.reschedule(end)
                    await backoff.pause(last.retry_after)
        except TimeoutError:
            why = f": {last.error.message}" if last else ""
            where = ", ".join(self._addresses)
            raise UnavailableError(
                f"no answer from {where} within {timeout:g} s{why}", fix="Look whether the cluster runs, then try again."
            ) from (last.error if last else None)

    async def writers(self) -> list[str]:
        """Who takes channels now. One attempt. Raises CallFailedError."""
        answer: tables_pb2.FindWritersResponse
        answer = await self.once(lambda stub: stub.FindWriters, tables_pb2.FindWritersRequest(), _FIND_SECONDS)
        return list(answer.addresses)

    async def once(self, method: Method[Answer], request: Message, seconds: float = _CALL_SECONDS) -> Answer:
        """One call, of whichever coordinator answers it. Raises CallFailedError with the last failure."""
        return await self.ask_each(lambda address: self._ask(address, method, request, seconds))

    async def ask_each(self, ask: Callable[[str], Awaitable[Answer]]) -> Answer:
        """Asks each address at most once, and where they point to. Raises CallFailedError with the last failure."""
        waiting = list(self._addresses)
        failure = Failure(UnavailableError("no coordinator is known", fix="Name one."), wire.ACTION_RETRY)
        for _ in range(len(waiting) + _REDIRECTS):
            if not waiting:
                break
            address = waiting.pop(0)
            try:
                answer = await ask(address)
            except CallFailedError as error:
                failure = error.failure
                if failure.action == wire.ACTION_RESUME and failure.address:
                    waiting.insert(0, failure.address)
                elif failure.action not in (wire.ACTION_RETRY, wire.ACTION_RESUME):
                    raise
            else:
                if address in self._addresses:
                    self._addresses.remove(address)
                    self._addresses.insert(0, address)
                return answer
        raise CallFailedError(failure)

    async def _ask(self, address: str, method: Method[Answer], request: Message, seconds: float) -> Answer:
        stub: tables_pb2_grpc.TableServiceAsyncStub = tables_pb2_grpc.TableServiceStub(self._transport.unary(address))
        with failing_calls(address):
            return await method(stub)(request, timeout=seconds, metadata=self._transport.metadata)


@contextlib.contextmanager
def failing_calls(address: str) -> Iterator[None]:
    """What gRPC raises becomes a CallFailedError."""
    try:
        yield
    except aio.AioRpcError as error:
        failure = failure_of_status(error.code(), error.details() or "", error.trailing_metadata(), address)
        raise CallFailedError(failure) from error


def addresses_of(address: str | Sequence[str]) -> list[str]:
    """``"a:7070,b:7070"`` or a list of such. Raises InvalidArgumentError."""
    parts = [part.strip() for item in ([address] if isinstance(address, str) else address) for part in item.split(",")]
    for part in parts:
        host, _, port = part.rpartition(":")
        if not host or not port.isdigit():
            raise InvalidArgumentError(f"{part!r} is no address", fix="Use host:port, several of them separated by commas.")
    return parts
