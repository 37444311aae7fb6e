"""Operators' requests to a table's owner, for ``headgate.aio``; the command line uses it::

    async with headgate.aio.connect("localhost:7070", timeout=600) as hg:
        await Maintenance(hg, "orders").savepoint("before the migration")

Answers are the messages of ``maintenance.proto``. Calls find the owner by themselves and survive a takeover.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from google.protobuf.message import Message

from headgate.coordinators import CallFailedError, ClusterConnection, answer_of, as_call_failures
from headgate.errors import UnavailableError, UnknownOutcomeError
from headgate.failures import Failure
from headgate.transport import Link
from headgate_proto.api.v1 import errors_pb2 as wire
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_proto.api.v1 import maintenance_pb2_grpc as rpc

if TYPE_CHECKING:
    Method = Callable[[rpc.MaintenanceServiceAsyncStub], Callable[..., Awaitable["Answer"]]]
    StreamMethod = Callable[[rpc.MaintenanceServiceAsyncStub], Callable[..., "_StreamCall"]]

Answer = TypeVar("Answer")


class Maintenance:
    """Requests about one table. All raise HeadgateError: the owner's, or UnavailableError after the connection's timeout."""

    def __init__(self, connection: ClusterConnection, table: str) -> None:
        self._connection = connection
        self._table = table

    async def compact(self, *, plan_only: bool = False, sort: bool = False) -> AsyncIterator[api.CompactResponse]:
        """Compacts everything that can be compacted now; yields the plan, its progress and its end.

        After a break it starts over and follows the open plans. ``plan_only``: yields what a plan would hold. ``sort``: also
        rewrites base files that are not in the order of the table's settings; raises InvalidArgumentError if these want none.
        """
        request = api.CompactRequest(table=self._table, plan_only=plan_only, sort=sort)
        while True:
            begun = await self._connection.coordinators.retry(
                lambda _: self._begin(lambda stub: stub.Compact, request), self._connection.timeout, patient=True
            )
            with begun.held:
                answer = begun.answer
                try:
                    while isinstance(answer, api.CompactResponse):
                        yield answer
                        with as_call_failures(begun.link):
                            answer = await begun.call.read()
                    return
                except CallFailedError as broken:
                    if broken.failure.action not in (wire.ACTION_RETRY, wire.ACTION_RESUME):
                        raise broken.failure.error from None

    async def clean(self, *, plan_only: bool = False) -> api.CleanResponse:
        """Deletes file slices that no reader needs. ``plan_only``: answers what would be deleted."""
        return await self._call(lambda stub: stub.Clean, api.CleanRequest(table=self._table, plan_only=plan_only))

    async def archive(self, *, plan_only: bool = False) -> api.ArchiveResponse:
        """Moves old instants from the active timeline into the history. ``plan_only``: answers what would be moved."""
        return await self._call(lambda stub: stub.Archive, api.ArchiveRequest(table=self._table, plan_only=plan_only))

    async def savepoint(self, comment: str = "") -> api.SavepointResponse:
        """Keeps the newest commit for ``restore``."""
        return await self._call(lambda stub: stub.Savepoint, api.SavepointRequest(table=self._table, comment=comment))

    async def remove_savepoint(self, instant: str) -> api.SavepointResponse:
        """Removes a savepoint. When an attempt broke off, one that is not there any more is removed."""

        async def attempt(maybe_done: bool) -> api.SavepointResponse:
            if maybe_done:
                listed = await self._ask_owner(lambda stub: stub.Savepoint, api.SavepointRequest(table=self._table, list=True))
                if instant not in listed.savepoints:
                    listed.instant = instant
                    return listed
            return await self._ask_owner(lambda stub: stub.Savepoint, api.SavepointRequest(table=self._table, remove=instant))

        return await self._connection.coordinators.retry(attempt, self._connection.timeout, patient=True)

    async def list_savepoints(self) -> api.SavepointResponse:
        """Answers the instants of all savepoints."""
        return await self._call(lambda stub: stub.Savepoint, api.SavepointRequest(table=self._table, list=True))

    async def restore(self, instant: str, *, plan_only: bool = False) -> api.RestoreResponse:
        """Takes the table back to a savepoint. ``plan_only``: answers what would be undone.

        The request is sent once, because a second restore would undo commits made after the first. Raises UnknownOutcomeError
        when it breaks off.
        """
        plan = api.RestoreRequest(table=self._table, instant=instant, plan_only=True)
        request = api.RestoreRequest(table=self._table, instant=instant)

        async def to_owner(address: str) -> api.RestoreResponse:
            planned = await self._ask(address, lambda stub: stub.Restore, plan)
            if plan_only:
                return planned
            fix = "Read its timeline: if it does not end with a restore, nothing was undone."
            return await self._ask_once(address, lambda stub: stub.Restore, request, "restore", fix)

        coordinators = self._connection.coordinators
        return await coordinators.retry(lambda _: coordinators.try_each(to_owner), self._connection.timeout, patient=True)

    async def truncate(self, partitions: Sequence[str] = (), *, whole_table: bool = False) -> api.TruncateResponse:
        """Removes all rows of partitions, or of the whole table.

        The request is sent once, because a second one would remove what was written after the first. Raises UnknownOutcomeError
        when it breaks off.
        """
        request = api.TruncateRequest(table=self._table, partitions=partitions, whole_table=whole_table)
        fix = "Read its timeline: if no replacecommit came, nothing was removed."

        async def to_owner(address: str) -> api.TruncateResponse:
            return await self._ask_once(address, lambda stub: stub.Truncate, request, "truncation", fix)

        coordinators = self._connection.coordinators
        return await coordinators.retry(lambda _: coordinators.try_each(to_owner), self._connection.timeout, patient=True)

    @contextlib.asynccontextmanager
    async def lend(self, longest_ms: int) -> AsyncIterator[api.LendResponse]:
        """Has the table lent to this program until the block ends, at most for so long; yields where it lies, and the epoch.

        Nobody else writes it meanwhile. It is opened there with ``take_over=True`` and owned, which has to give the next epoch:
        another one, and a DeposedError later, says that the loan is over.
        """
        request = api.LendRequest(table=self._table, longest_ms=longest_ms)
        begun = await self._connection.coordinators.retry(
            lambda _: self._begin(lambda stub: stub.Lend, request), self._connection.timeout, patient=True
        )
        with begun.held:
            if not isinstance(begun.answer, api.LendResponse):
                raise UnavailableError(f"{self._table!r} changed hands before it was lent", fix="Run the same again.")
            yield begun.answer

    async def drop(self, table_uuid: str, *, plan_only: bool = False, grace_ms: int = 0) -> api.DropResponse:
        """Drops the table of this name and id. ``plan_only``: answers what would be deleted; ``grace_ms``: how long it can be
        brought back.
        """
        request = api.DropRequest(table=self._table, table_uuid=table_uuid, plan_only=plan_only, grace_ms=grace_ms)
        return await self._call(lambda stub: stub.Drop, request)

    async def rename(self, table_uuid: str, to: str) -> None:
        """Gives the table of this name and id another name."""
        await self._call(lambda stub: stub.Rename, api.RenameRequest(table=self._table, table_uuid=table_uuid, to=to))

    async def undrop(self) -> api.UndropResponse:
        """Brings the table back, in its grace time."""
        return await self._call(lambda stub: stub.Undrop, api.UndropRequest(table=self._table))

    async def adopt(
        self, *, buckets: int | None = None, roll_back: bool = False, remove_metadata_table: bool = False
    ) -> api.AdoptResponse:
        """Adopts what another program did to the table; ``buckets``: None for as many as the table says; ``roll_back``: rolls
        back that program's pending writes.
        """
        request = api.AdoptRequest(
            table=self._table, buckets=buckets or 0, roll_back=roll_back, remove_metadata_table=remove_metadata_table
        )
        return await self._call(lambda stub: stub.Adopt, request)

    async def repair(self) -> api.RepairResponse:
        """Restores deleted files of the timeline, and removes files of archived instants that reappeared."""
        return await self._call(lambda stub: stub.Repair, api.RepairRequest(table=self._table))

    async def accept_future_times(self) -> str:
        """Lets a table commit although its times are ahead of the clock; returns the newest such time, "" if there is none."""
        request = api.AdoptRequest(table=self._table, future_times=True)
        return str((await self._call(lambda stub: stub.Adopt, request)).goes_on_from)

    async def configure(self, settings: Mapping[str, str], unset: Sequence[str] = ()) -> api.ConfigureResponse:
        """Changes settings and answers all of them; without changes it only answers them."""
        request = api.ConfigureRequest(table=self._table, settings=settings, unset=unset)
        return await self._call(lambda stub: stub.Configure, request)

    async def change_version(self, table_version: int) -> int:
        """Brings the table to Hudi's version 8 or 9, and returns the one that it had. Rows and open channels stay."""
        request = api.ChangeVersionRequest(table=self._table, table_version=table_version)
        return int((await self._call(lambda stub: stub.ChangeVersion, request)).before)

    async def alter(
        self, add: bytes = b"", widen: bytes = b"", nullable: Sequence[str] = (), *, plan_only: bool = False
    ) -> api.AlterResponse:
        """Changes columns. ``add``, ``widen``: Arrow IPC schema messages, a field for each column; names are paths."""
        request = api.AlterRequest(table=self._table, add=add, widen=widen, nullable=nullable, plan_only=plan_only)
        return await self._call(lambda stub: stub.Alter, request)

    async def evolve(self, columns: bytes) -> api.EvolveResponse:
        """Lets the table hold a batch's columns, an Arrow IPC schema message, as far as its setting ``headgate.evolve`` goes."""
        return await self._call(lambda stub: stub.Evolve, api.EvolveRequest(table=self._table, columns=columns))

    async def set_slice_aside(self, name: str, comment: str = "") -> api.SliceResponse:
        """Sets a file slice aside: its rows are refused, and it is not compacted."""
        return await self._call(lambda stub: stub.Slice, api.SliceRequest(table=self._table, set_aside=name, comment=comment))

    async def readmit_slice(self, name: str, *, accept_loss: bool = False) -> api.SliceResponse:
        """Ends ``set_slice_aside``: the slice's rows are taken again, and it is compacted next. ``accept_loss``: without those of
        its files that are gone from the store.
        """
        request = api.SliceRequest(table=self._table, readmit=name, accept_loss=accept_loss)
        return await self._call(lambda stub: stub.Slice, request)

    async def list_slices(self) -> api.SliceResponse:
        """Answers the slices that are set aside or cannot be compacted."""
        return await self._call(lambda stub: stub.Slice, api.SliceRequest(table=self._table, list=True))

    async def list_channels(self, prefix: str = "") -> AsyncIterator[api.ChannelSummary]:
        """Yields the channels whose names begin with ``prefix``, by name."""
        request, more = api.ListChannelsRequest(table=self._table, prefix=prefix), True
        while more:
            page = await self._call(lambda stub: stub.ListChannels, request)
            for each in page.channels:
                yield each
            request.after, more = page.channels[-1].name if page.channels else "", page.more

    async def _call(self, method: "Method[Answer]", request: Message) -> Answer:
        return await self._connection.coordinators.retry(
            lambda _: self._ask_owner(method, request), self._connection.timeout, patient=True
        )

    async def _ask_owner(self, method: "Method[Answer]", request: Message) -> Answer:
        """One attempt, at each coordinator until the owner answers. Raises CallFailedError."""
        return await self._connection.coordinators.try_each(lambda address: self._ask(address, method, request))

    async def _ask(self, address: str, method: "Method[Answer]", request: Message) -> Answer:
        with self._connection.transport.link(address) as link:
            stub: rpc.MaintenanceServiceAsyncStub = rpc.MaintenanceServiceStub(link.channel)
            answer: Answer = await answer_of(method(stub)(request, metadata=link.metadata), link)
            return answer

    async def _ask_once(self, address: str, method: "Method[Answer]", request: Message, what: str, fix: str) -> Answer:
        """As ``_ask``, for a call that must not be sent again when it breaks off."""
        try:
            return await self._ask(address, method, request)
        except CallFailedError as broken:
            if not broken.failure.unknown_outcome:
                raise
            reason = broken.failure.error.message
            unknown = UnknownOutcomeError(f"the {what} of {self._table!r} broke off: {reason}", fix=fix)
            raise CallFailedError(Failure(unknown, wire.ACTION_GIVE_UP)) from broken

    async def _begin(self, method: "StreamMethod", request: Message) -> "_Begun":
        async def begin(address: str) -> "_Begun":
            with contextlib.ExitStack() as held:
                link = held.enter_context(self._connection.transport.link(address))
                stub: rpc.MaintenanceServiceAsyncStub = rpc.MaintenanceServiceStub(link.channel)
                call = method(stub)(request, metadata=link.metadata)
                held.callback(call.cancel)
                answer = await answer_of(call, link)
                return _Begun(link, call, answer, held.pop_all())

        return await self._connection.coordinators.try_each(begin)


class _StreamCall(Protocol):
    """A call whose answers are a stream."""

    async def read(self) -> object:
        """The next answer; gRPC's EOF at the end."""

    def cancel(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class _Begun:
    """The owner's stream, and its first answer. The end of ``held`` ends it."""

    link: Link
    call: _StreamCall
    answer: object
    held: contextlib.ExitStack
