"""The control streams of a writer: orders of coordinators in, reports and loads out (rules RO8, RO9)."""

from typing import Protocol, TypeAlias, assert_never

import grpc

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1.coordination_pb2_grpc import CoordinationServiceStub
from headgate_runtime.coordinator_client import CoordinatorClient
from headgate_runtime.coordinator_stream import CoordinatorStream
from headgate_runtime.errors import UnknownMessageError
from headgate_runtime.world import World
from headgate_writer.table_writer import Owner

ControlStream: TypeAlias = CoordinatorStream[wire.ControlRequest, wire.ControlResponse]
ControlClient: TypeAlias = CoordinatorClient[wire.ControlRequest, wire.ControlResponse]


class OrderReceiver(Protocol):
    """Carries out the orders of owners (``tables.Tables``)."""

    def receive_order(self, owner: Owner, order: wire.TableOrder) -> None:
        """Handles one order; called in the order of the stream. Raises UnknownMessageError."""

    def owner_lost(self, owner: Owner) -> None:
        """The stream has ended, and with it the attachments that came on it."""

    def loads(self, owner: Owner) -> list[wire.Load]:
        """Returns the loads for the next heartbeat."""


class ControlHandler:
    """Makes and handles the messages of a writer's control streams (``headgate_runtime.coordinator_stream.StreamHandler``).

    ``hello`` may be filled in until the first stream begins.
    """

    def __init__(self, hello: wire.Hello, receiver: OrderReceiver, world: World) -> None:
        self._hello = hello
        self._receiver = receiver
        self._world = world

    def open_call(self, channel: grpc.aio.Channel) -> "grpc.aio.StreamStreamCall[wire.ControlRequest, wire.ControlResponse]":
        return CoordinationServiceStub(channel).Control()

    def hello(self) -> wire.ControlRequest:
        return wire.ControlRequest(hello=self._hello)

    def leave(self) -> wire.ControlRequest:
        return wire.ControlRequest(leave=wire.Leave())

    def heartbeat(self, stream: ControlStream) -> wire.ControlRequest:
        return wire.ControlRequest(heartbeat=wire.Heartbeat(loads=self._receiver.loads(stream)))

    def receive(self, stream: ControlStream, message: wire.ControlResponse) -> None:
        kind = message.WhichOneof("message")
        match kind:
            case "table":
                self._receiver.receive_order(stream, message.table)
            case "welcome":
                stream.welcome(message.welcome.heartbeat_ms / 1000)
            case "released":
                stream.release()
            case None:
                raise UnknownMessageError("a message of a coordinator")
            case _:
                assert_never(kind)

    def sent(self, message: wire.ControlRequest) -> None:
        if message.table.WhichOneof("message") == "flushed":
            self._world.reached("status_sent")

    def connected(self, stream: ControlStream) -> None:
        pass

    def disconnected(self, stream: ControlStream) -> None:
        self._receiver.owner_lost(stream)
