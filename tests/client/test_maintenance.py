"""The SDK's way to a table's owner: which coordinator it asks, what it repeats, and what it never sends twice."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

import headgate
from headgate import aio
from headgate.maintenance import Maintenance
from headgate_proto.api.v1 import errors_pb2 as wire
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_proto.api.v1 import maintenance_pb2_grpc as rpc


class Coordinator(rpc.MaintenanceServiceServicer):
    """Answers what ``says`` holds, in order: a message, an error, or a status as of something between us and it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.says: list[Any] = []
        self.address = ""

    async def Clean(self, request: api.CleanRequest, context: Any) -> Any:
        return await self._answer(request, context)

    async def Restore(self, request: api.RestoreRequest, context: Any) -> Any:
        return await self._answer(request, context)

    async def Savepoint(self, request: api.SavepointRequest, context: Any) -> Any:
        return await self._answer(request, context)

    async def Truncate(self, request: api.TruncateRequest, context: Any) -> Any:
        return await self._answer(request, context)

    async def Compact(self, request: api.CompactRequest, context: Any) -> AsyncIterator[api.CompactResponse]:
        self.asked.append(request)
        for said in self.says.pop(0):
            if isinstance(said, grpc.StatusCode):
                await context.abort(said, "on the way")
            yield said

    async def _answer(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        said = self.says.pop(0)
        if isinstance(said, grpc.StatusCode):
            await context.abort(said, "on the way")
        if isinstance(said, wire.Error):
            await context.abort(grpc.StatusCode.ABORTED, "", (("headgate-error-bin", said.SerializeToString()),))
        return said


@asynccontextmanager
async def coordinator() -> AsyncIterator[Coordinator]:
    made, server = Coordinator(), grpc.aio.server()  # type: ignore[abstract]
    rpc.add_MaintenanceServiceServicer_to_server(made, server)
    made.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield made
    finally:
        await server.stop(None)


@asynccontextmanager
async def asking(*asked: Coordinator) -> AsyncIterator[Maintenance]:
    async with aio.connect([each.address for each in asked], timeout=20) as connection:
        yield Maintenance(connection, "t")


def not_owner(address: str) -> wire.Error:
    return wire.Error(code=wire.CODE_NOT_OWNER, action=wire.ACTION_RESUME, message="another", address=address)


UNAVAILABLE = wire.Error(code=wire.CODE_UNAVAILABLE, action=wire.ACTION_RETRY, message="no coordinator serves the table just now")
PLANNED = api.RestoreResponse(undone=["2"])
RESTORED = api.RestoreResponse(instant="3", undone=["2"])


async def test_the_owner_is_found_through_any_coordinator() -> None:
    async with coordinator() as other, coordinator() as owner, asking(other) as maintenance:
        other.says, owner.says = [not_owner(owner.address)], [api.CleanResponse(files=7)]
        assert (await maintenance.clean()).files == 7
        assert owner.asked == [api.CleanRequest(table="t")]


async def test_what_nobody_did_is_sent_again() -> None:
    async with coordinator() as owner, asking(owner) as maintenance:
        owner.says = [UNAVAILABLE, grpc.StatusCode.UNAVAILABLE, api.CleanResponse(files=7)]
        assert (await maintenance.clean()).files == 7


async def test_a_refusal_is_raised_as_what_it_is() -> None:
    async with coordinator() as owner, asking(owner) as maintenance:
        owner.says = [wire.Error(code=wire.CODE_INVALID_ARGUMENT, action=wire.ACTION_FIX_CALL, message="no", fix="Yes.")]
        with pytest.raises(headgate.InvalidArgumentError, match=r"no\. Yes\."):
            await maintenance.clean()


async def test_a_restore_that_broke_off_is_never_sent_twice() -> None:
    """A second one would also take back what was committed after the first."""
    async with coordinator() as owner, asking(owner) as maintenance:
        owner.says = [PLANNED, grpc.StatusCode.UNAVAILABLE, PLANNED, RESTORED]
        with pytest.raises(headgate.UnknownOutcomeError, match="timeline"):
            await maintenance.restore("1")
        assert [request.plan_only for request in owner.asked] == [True, False]


async def test_a_savepoint_whose_removal_broke_off_is_removed_whether_it_was_done_or_not() -> None:
    removal, listing = api.SavepointRequest(table="t", remove="1"), api.SavepointRequest(table="t", list=True)
    done = api.SavepointResponse(instant="1", savepoints=["2"])
    async with coordinator() as owner, asking(owner) as maintenance:
        owner.says = [grpc.StatusCode.UNAVAILABLE, api.SavepointResponse(savepoints=["2"])]
        assert await maintenance.remove_savepoint("1") == done
        assert owner.asked == [removal, listing]
        owner.says = [grpc.StatusCode.UNAVAILABLE, api.SavepointResponse(savepoints=["1", "2"]), done]
        assert await maintenance.remove_savepoint("1") == done
        assert owner.asked[2:] == [removal, listing, removal]


async def test_a_restore_that_nobody_did_is_sent_again() -> None:
    async with coordinator() as owner, asking(owner) as maintenance:
        owner.says = [grpc.StatusCode.UNAVAILABLE, PLANNED, UNAVAILABLE, PLANNED, RESTORED]
        assert await maintenance.restore("1") == RESTORED


async def test_a_compaction_is_followed_through_a_break() -> None:
    planned, progress, ended = (
        api.CompactResponse(planned=api.CompactionPlanned(compactors=1)),
        api.CompactResponse(progress=api.CompactionProgress(operations=1)),
        api.CompactResponse(ended=api.CompactionEnded()),
    )
    async with coordinator() as owner, asking(owner) as maintenance:
        owner.says = [[planned, progress, grpc.StatusCode.UNAVAILABLE], [grpc.StatusCode.UNAVAILABLE], [planned, ended]]
        assert [answer async for answer in maintenance.compact()] == [planned, progress, planned, ended]
        assert len(owner.asked) == 3


async def test_a_compaction_is_followed_with_a_newer_token_when_the_older_one_is_refused(tmp_path: Path) -> None:
    """Also if another call has brought the newer one meanwhile."""
    (file := tmp_path / "token").write_text("first")
    planned = api.CompactResponse(planned=api.CompactionPlanned(compactors=1))
    async with coordinator() as owner, aio.connect(owner.address, token=file) as connection:
        owner.says = [[planned, refused := grpc.StatusCode.UNAUTHENTICATED], api.CleanResponse(), [planned, refused]]
        maintenance = Maintenance(connection, "t")
        compaction = maintenance.compact()
        assert await anext(compaction) == planned
        file.write_text("second")
        await maintenance.clean()
        assert await anext(compaction) == planned
        with pytest.raises(headgate.UnauthenticatedError):
            await anext(compaction)


async def test_a_truncation_that_broke_off_is_never_sent_twice_and_one_that_nobody_did_is() -> None:
    """A second one would also remove what was written after the first."""
    done = api.TruncateResponse(instant="3", file_groups=2)
    async with coordinator() as owner, asking(owner) as maintenance:
        owner.says = [UNAVAILABLE, done]
        assert await maintenance.truncate(whole_table=True) == done
        owner.says = [grpc.StatusCode.UNAVAILABLE, done]
        with pytest.raises(headgate.UnknownOutcomeError, match="timeline"):
            await maintenance.truncate(["a"])
        assert owner.says == [done]
