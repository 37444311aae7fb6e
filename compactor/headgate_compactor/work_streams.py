"""The work streams of a compactor: attempts of coordinators in, progress and reports out."""

from typing import TypeAlias, assert_never

import grpc

from headgate_compactor.attempt_pool import AttemptPool
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_proto.cluster.v1.compaction_pb2_grpc import CompactionServiceStub
from headgate_runtime.coordinator_client import CoordinatorClient
from headgate_runtime.coordinator_stream import CoordinatorStream
from headgate_runtime.errors import UnknownMessageError

WorkStream: TypeAlias = CoordinatorStream[wire.WorkRequest, wire.WorkResponse]
WorkClient: TypeAlias = CoordinatorClient[wire.WorkRequest, wire.WorkResponse]


class WorkHandler:
    """Makes and handles the messages of a compactor's work streams (``headgate_runtime.coordinator_stream.StreamHandler``)."""

    def __init__(self, hello: wire.CompactorHello, pool: AttemptPool) -> None:
        self._hello = hello
        self._pool = pool

    def open_call(self, channel: grpc.aio.Channel) -> "grpc.aio.StreamStreamCall[wire.WorkRequest, wire.WorkResponse]":
        return CompactionServiceStub(channel).Work()

    def hello(self) -> wire.WorkRequest:
        return wire.WorkRequest(hello=self._hello)

    def leave(self) -> wire.WorkRequest:
        return wire.WorkRequest(leave=wire.CompactorLeave())

    def heartbeat(self, stream: WorkStream) -> wire.WorkRequest:
        return wire.WorkRequest(heartbeat=wire.AttemptsHeartbeat(attempts=self._pool.progress(stream)))

    def receive(self, stream: WorkStream, message: wire.WorkResponse) -> None:
        kind = message.WhichOneof("message")
        match kind:
            case "run":
                self._pool.start_attempt(stream, message.run)
            case "drop":
                self._pool.drop_attempt(message.drop.attempt)
            case "welcome":
                stream.welcome(message.welcome.heartbeat_ms / 1000)
            case "released":
                stream.release()
            case None:
                raise UnknownMessageError("a message of a coordinator")
            case _:
                assert_never(kind)

    def sent(self, message: wire.WorkRequest) -> None:
        pass

    def connected(self, stream: WorkStream) -> None:
        self._pool.add_coordinator(stream)

    def disconnected(self, stream: WorkStream) -> None:
        self._pool.remove_coordinator(stream)
