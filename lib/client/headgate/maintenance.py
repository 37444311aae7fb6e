"""What operators ask of a table's owner: ``headgate.aio`` only, the command line's way to the cluster.

    async with headgate.aio.connect("localhost:7070", timeout=600) as hg:
        await Maintenance(hg, "flights").savepoint("before the migration")

Answers are the messages of ``maintenance.proto``. Calls look for the owner by themselves and go on through a takeover.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from google.protobuf.message import Message
from grpc import aio

from headgate.coordinators import CallFailedError, failing_calls
from headgate.errors import UnknownOutcomeError
from headgate.transport import Failure
from headgate_proto.api.v1 import errors_pb2 as wire
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_proto.api.v1 import maintenance_pb2_grpc as rpc

if TYPE_CHECKING:
    from headgate.aio import Headgate

    Method = Callable[[rpc.MaintenanceServiceAsyncStub], Callable[..., Awaitable["Answer"]]]

Answer = TypeVar("Answer")


class Maintenance:
    """Of one table. Every call raises HeadgateError: what the owner answers, UnavailableError after the connection's timeout."""

    def __init__(self, headgate: "Headgate", table: str) -> None:
        self._headgate = headgate
        self._table = table

    async def compact(self, *, plan_only: bool = False) -> AsyncIterator[api.CompactResponse]:
        """Everything that there is to compact, from the plan to its end; begins anew, with the plans that are open, after a
        break. ``plan_only``: only says what there would be to do.
        """
        request = api.CompactRequest(table=self._table, plan_only=plan_only)
        while True:
            call, answer = await self._headgate.coordinators.until(
                lambda _: self._begin(request), self._headgate.timeout, patient=True
            )
            try:
                while isinstance(answer, api.CompactResponse):
                    yield answer
                    with failing_calls(""):
                        answer = await call.read()
                return
            except CallFailedError as broken:
                if broken.failure.action not in (wire.ACTION_RETRY, wire.ACTION_RESUME):
                    raise broken.failure.error from None
            finally:
                call.cancel()

    async def clean(self, *, plan_only: bool = False) -> api.CleanResponse:
        """Removes file slices that nobody needs any more."""
        return await self._call(lambda stub: stub.Clean, api.CleanRequest(table=self._table, plan_only=plan_only))

    async def archive(self, *, plan_only: bool = False) -> api.ArchiveResponse:
        """Moves old instants off the active timeline."""
        return await self._call(lambda stub: stub.Archive, api.ArchiveRequest(table=self._table, plan_only=plan_only))

    async def savepoint(self, comment: str = "") -> api.SavepointResponse:
        """Saves the newest commit."""
        return await self._call(lambda stub: stub.Savepoint, api.SavepointRequest(table=self._table, comment=comment))

    async def remove_savepoint(self, instant: str) -> api.SavepointResponse:
        """Ends a savepoint."""
        return await self._call(lambda stub: stub.Savepoint, api.SavepointRequest(table=self._table, remove=instant))

    async def list_savepoints(self) -> api.SavepointResponse:
        """Instants that are saved."""
        return await self._call(lambda stub: stub.Savepoint, api.SavepointRequest(table=self._table, list=True))

    async def restore(self, instant: str, *, plan_only: bool = False) -> api.RestoreResponse:
        """Takes the table back. Sent once: raises UnknownOutcomeError when that breaks off, since what was committed after a
        first restore would be taken back by a second one. ``plan_only``: only says what there would be to take back.
        """
        plan = api.RestoreRequest(table=self._table, instant=instant, plan_only=True)
        request = api.RestoreRequest(table=self._table, instant=instant)

        async def to_owner(address: str) -> api.RestoreResponse:
            planned = await self._ask(address, lambda stub: stub.Restore, plan)
            if plan_only:
                return planned
            try:
                return await self._ask(address, lambda stub: stub.Restore, request)
            except CallFailedError as broken:
                if not broken.failure.unknown_outcome:
                    raise
                unknown = UnknownOutcomeError(
                    f"the restore of {self._table!r} broke off: {broken.failure.error.message}",
                    fix="Look at its timeline: if there is no restore at the end, nothing was taken back.",
                )
                raise CallFailedError(Failure(unknown, wire.ACTION_GIVE_UP)) from broken

        coordinators = self._headgate.coordinators
        return await coordinators.until(lambda _: coordinators.ask_each(to_owner), self._headgate.timeout, patient=True)

    async def adopt(self, *, buckets: int = 0, roll_back: bool = False) -> api.AdoptResponse:
        """Takes what another program did to the table as its own; ``roll_back``: but for its pending writes, which go."""
        request = api.AdoptRequest(table=self._table, buckets=buckets, roll_back=roll_back)
        return await self._call(lambda stub: stub.Adopt, request)

    async def repair(self) -> api.RepairResponse:
        """Puts files of the timeline back that somebody has deleted, and removes those of archived instants that came back."""
        return await self._call(lambda stub: stub.Repair, api.RepairRequest(table=self._table))

    async def accept_future_times(self) -> str:
        """Lets a table go on whose times are ahead of the clock; returns the time from which it does, "" when none is ahead."""
        request = api.AdoptRequest(table=self._table, future_times=True)
        return str((await self._call(lambda stub: stub.Adopt, request)).goes_on_from)

    async def configure(self, settings: Mapping[str, str], unset: Sequence[str] = ()) -> api.ConfigureResponse:
        """Changes settings; without changes it only shows them."""
        request = api.ConfigureRequest(table=self._table, settings=settings, unset=unset)
        return await self._call(lambda stub: stub.Configure, request)

    async def set_slice_aside(self, name: str, comment: str = "") -> api.SliceResponse:
        """Rows of the file slice are refused, and it is not compacted."""
        return await self._call(lambda stub: stub.Slice, api.SliceRequest(table=self._table, set_aside=name, comment=comment))

    async def take_slice_in(self, name: str) -> api.SliceResponse:
        """Ends that."""
        return await self._call(lambda stub: stub.Slice, api.SliceRequest(table=self._table, take_in=name))

    async def list_slices(self) -> api.SliceResponse:
        """Slices that are set aside, or cannot be compacted."""
        return await self._call(lambda stub: stub.Slice, api.SliceRequest(table=self._table, list=True))

    async def _call(self, method: "Method[Answer]", request: Message) -> Answer:
        coordinators = self._headgate.coordinators
        return await coordinators.until(
            lambda _: coordinators.ask_each(lambda address: self._ask(address, method, request)),
            self._headgate.timeout,
            patient=True,
        )

    async def _ask(self, address: str, method: "Method[Answer]", request: Message) -> Answer:
        transport = self._headgate.transport
        stub: rpc.MaintenanceServiceAsyncStub = rpc.MaintenanceServiceStub(transport.unary(address))
        with failing_calls(address):
            return await method(stub)(request, metadata=transport.metadata)

    async def _begin(
        self, request: api.CompactRequest
    ) -> "tuple[aio.UnaryStreamCall[api.CompactRequest, api.CompactResponse], object]":
        """The stream and its first answer, from the owner."""
        transport = self._headgate.transport

        async def begin(
            address: str,
        ) -> "tuple[aio.UnaryStreamCall[api.CompactRequest, api.CompactResponse], object]":
            stub: rpc.MaintenanceServiceAsyncStub = rpc.MaintenanceServiceStub(transport.unary(address))
            call = stub.Compact(request, metadata=transport.metadata)
            with failing_calls(address):
                return call, await call.read()

        return await self._headgate.coordinators.ask_each(begin)
