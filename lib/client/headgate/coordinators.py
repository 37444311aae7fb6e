"""Calls to the coordinators: any of them answers for every table."""

import asyncio
import contextlib
import dataclasses
import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from google.protobuf.message import Message
from grpc import aio

from headgate.arguments import checked_texts
from headgate.errors import InvalidArgumentError, UnavailableError, VersionError
from headgate.failures import Failure, failure_of_status
from headgate.first_contact import FirstContact
from headgate.system import System
from headgate.transport import Link, Transport
from headgate_proto.api.v1 import errors_pb2 as wire
from headgate_proto.api.v1 import tables_pb2, tables_pb2_grpc

Answer = TypeVar("Answer")
Method = Callable[["tables_pb2_grpc.TableServiceAsyncStub"], Callable[..., Awaitable[Answer]]]
"""Selects a call: ``lambda stub: stub.Status``."""

_CALL_SECONDS = 10.0
"""Deadline of one attempt. Creating a table on a slow store takes about 1 s."""
_FIND_SECONDS = 2.0
"""Deadline of one FindWriters: coordinators answer it from memory, and one that is stopped must not delay a channel."""
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 1.0
_REDIRECTS = 4


class Backoff:
    """Random pauses below a bound that doubles from 0.1 to 1 s, so that clients spread out."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._attempt = 0

    def reset(self) -> None:
        """Starts over with the shortest pause, after a success."""
        self._attempt = 0

    async def pause(self, at_least: float = 0.0, at_most: float = math.inf) -> None:
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self._attempt, 10))
        self._attempt += 1
        await self._system.clock.sleep(min(at_least + longest * self._system.randomness.random(), at_most))


class CallFailedError(Exception):
    """Internal: one attempt failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


class Coordinators:
    """``TableService`` at several addresses; calls go first to the one that answered last."""

    def __init__(self, addresses: Sequence[str], transport: Transport, system: System, wait: float = 0.0) -> None:
        self._addresses = list(addresses)
        self._first_contact = FirstContact(wait)
        self._transport = transport
        self._system = system

    async def call(self, method: Method[Answer], request: Callable[[bool], Message], timeout: float) -> Answer:
        """Repeats a call until a coordinator answers. ``request`` takes whether an earlier attempt may have been carried out.

        Raises the coordinator's error; UnavailableError after ``timeout`` seconds.
        """
        return await self.retry(lambda maybe_done: self.call_once(method, request(maybe_done)), timeout)

    async def retry(self, attempt: Callable[[bool], Awaitable[Answer]], timeout: float, *, patient: bool = False) -> Answer:
        """Repeats ``attempt`` while its CallFailedError allows it; it takes whether an earlier attempt may have been carried out.

        ``patient``: ``timeout`` ends only the repetition, never a running attempt. Raises the coordinator's error;
        UnavailableError after ``timeout`` seconds, and much earlier as long as there was no way to any coordinator.
        """
        backoff = Backoff(self._system)
        started = asyncio.get_running_loop().time()
        maybe_done = False
        last: Failure | None = None
        try:
            async with asyncio.timeout(timeout) as deadline:
                end = deadline.when()
                while True:
                    try:
                        deadline.reschedule(None if patient else end)
                        answer = await attempt(maybe_done)
                        self._first_contact.made = True
                        return answer
                    except CallFailedError as error:
                        last = error.failure
                        if last.action not in (wire.ACTION_RETRY, wire.ACTION_RESUME):
                            raise last.error from None
                        maybe_done = maybe_done or last.unknown_outcome
                        deadline.reschedule(end)
                    patience = self._first_contact.patience(last, asyncio.get_running_loop().time() - started)
                    await backoff.pause(last.retry_after, at_most=patience)
        except TimeoutError:
            last = last and self._first_contact.most_telling(last)
            why = f": {last.error.message}" if last else ""
            where = ", ".join(self._addresses)
            raise UnavailableError(
                f"no answer from {where} within {timeout:g} s{why}",
                fix=last.error.fix if last and last.unreachable else "Check that the cluster runs, then try again.",
            ) from None

    async def find_writers(self) -> list[str]:
        """Addresses of the writers that take channels now. One attempt. Raises CallFailedError."""
        answer: tables_pb2.FindWritersResponse
        answer = await self.call_once(lambda stub: stub.FindWriters, tables_pb2.FindWritersRequest(), _FIND_SECONDS)
        return list(answer.addresses)

    async def call_once(self, method: Method[Answer], request: Message, seconds: float = _CALL_SECONDS) -> Answer:
        """One call, to each coordinator in turn until one answers. Raises CallFailedError with the last failure."""
        return await self.try_each(lambda address: self._ask(address, method, request, seconds))

    async def try_each(self, ask: Callable[[str], Awaitable[Answer]]) -> Answer:
        """Asks each address once, and each address that an answer names. Raises CallFailedError with the last failure."""
        waiting = list(self._addresses)
        failures: list[Failure] = []
        for _ in range(len(waiting) + _REDIRECTS):
            if not waiting:
                break
            address = waiting.pop(0)
            try:
                answer = await ask(address)
            except CallFailedError as error:
                failures.append(failure := error.failure)
                if failure.action == wire.ACTION_RESUME and failure.address:
                    waiting.insert(0, failure.address)
                elif failure.action not in (wire.ACTION_RETRY, wire.ACTION_RESUME):
                    raise
            else:
                if address in self._addresses:
                    self._addresses.remove(address)
                    self._addresses.insert(0, address)
                return answer
        raise CallFailedError(_of_all(failures))

    async def _ask(self, address: str, method: Method[Answer], request: Message, seconds: float) -> Answer:
        with self._transport.link(address) as link:
            stub: tables_pb2_grpc.TableServiceAsyncStub = tables_pb2_grpc.TableServiceStub(link.channel)
            answer: Answer = await answer_of(method(stub)(request, timeout=seconds, metadata=link.metadata), link)
            return answer


class ClusterConnection(Protocol):
    """What a call takes from a connection to a cluster. ``timeout``: seconds for a call with all its repetitions."""

    coordinators: Coordinators
    transport: Transport
    timeout: float


def _of_all(failures: Sequence[Failure]) -> Failure:
    """The last failure; that of all addresses, if there is a way to none of them."""
    last = failures[-1]
    if not all(failure.unreachable for failure in failures):
        return dataclasses.replace(last, unreachable=False)
    messages = list(dict.fromkeys(failure.error.message for failure in failures))
    return dataclasses.replace(last, error=UnavailableError("; ".join(messages), fix=last.error.fix))


async def answer_of(call: Any, link: Link) -> Any:
    """The first answer of a call. Raises CallFailedError."""
    with as_call_failures(link):
        answer = await (call.read() if isinstance(call, aio.UnaryStreamCall) else call)
        link.transport.answered(link.address, await call.initial_metadata())
        return answer


@contextlib.contextmanager
def as_call_failures(link: Link) -> Iterator[None]:
    """Turns gRPC's errors, and a server that is too far away, into CallFailedError. Raises ClosedError."""
    try:
        try:
            yield
        except asyncio.CancelledError:
            # Of a call that its channel ends; the task goes on.
            if (task := asyncio.current_task()) is not None and not task.cancelling():
                link.transport.check_open()
            raise
        except aio.AioRpcError as error:
            link.transport.answered(link.address, error.initial_metadata(), heard=False)
            said = (error.code(), error.details() or "", error.trailing_metadata())
            raise CallFailedError(link.judged(failure_of_status(*said, link.address, tls=link.has_tls))) from error
    except VersionError as skewed:
        raise CallFailedError(Failure(skewed, wire.ACTION_GIVE_UP)) from skewed


def parse_addresses(address: str | Sequence[str]) -> list[str]:
    """The addresses in ``"a:7070,b:7070"`` or in a list of such, at least one. Raises InvalidArgumentError."""
    parts = [part.strip() for item in checked_texts(address, "address") for part in item.split(",")]
    if not parts:
        raise InvalidArgumentError("no address is given", fix="Give that of a coordinator, such as localhost:7070.")
    for part in parts:
        host, _, port = part.rpartition(":")
        if not host or not port.isdigit():
            raise InvalidArgumentError(f"{part!r} is not an address", fix="Use host:port; separate several with commas.")
    return parts
