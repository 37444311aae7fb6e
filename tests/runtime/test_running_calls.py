"""Calls that a stopping server cuts off end before it says that it has stopped."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
import structlog

from headgate_proto.api.v1 import ingest_pb2, ingest_pb2_grpc
from headgate_runtime import running_calls
from headgate_runtime.channels import connect
from headgate_runtime.grpc_server import Server
from headgate_runtime.settings import ServiceSettings, load_settings


class SlowToEnd(ingest_pb2_grpc.IngestServiceServicer):
    """Its streams take ``seconds`` to unwind, and say when they have."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.ended = 0

    async def Append(self, requests: Any, context: Any) -> AsyncIterator[Any]:
        try:
            async for _ in requests:
                yield ingest_pb2.AppendResponse(opened=ingest_pb2.Opened(incarnation=1))
        finally:
            with contextlib.suppress(asyncio.CancelledError):  # gRPC's
                await asyncio.sleep(self.seconds)
            await asyncio.sleep(self.seconds)
            self.ended += 1


async def serve_and_stop(servicer: SlowToEnd, streams: int) -> None:
    settings = load_settings(ServiceSettings, [], prog="svc", about="A service.")
    server = Server(settings)
    ingest_pb2_grpc.add_IngestServiceServicer_to_server(servicer, server.grpc)
    address = await server.start()
    async with connect(address, settings) as channel:
        calls = [ingest_pb2_grpc.IngestServiceStub(channel).Append() for _ in range(streams)]
        for call in calls:
            await call.write(ingest_pb2.AppendRequest(flush=ingest_pb2.Flush()))
            assert (await call.read()).opened.incarnation == 1
        await server.stop(0)
        for call in calls:
            with pytest.raises(grpc.aio.AioRpcError):
                await call.read()


def test_a_stopped_server_has_no_calls_left_that_the_end_of_the_process_would_cut_off(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    servicer = SlowToEnd(0.3)
    with caplog.at_level(logging.ERROR):
        asyncio.run(serve_and_stop(servicer, 3))
    assert servicer.ended == 3
    assert caplog.records == []
    assert capsys.readouterr().err == ""


async def test_a_call_that_never_ends_does_not_hold_the_process_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_calls, "LONGEST_UNWINDING_S", 0.1)
    servicer = SlowToEnd(60)
    with structlog.testing.capture_logs() as logs:
        async with asyncio.timeout(30):
            await serve_and_stop(servicer, 2)
    assert [(line["event"], line["calls"]) for line in logs] == [("calls that were cut off do not end", 2)]
    assert servicer.ended == 0
