"""gRPC channels of one connection, with their options and what they show."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import grpc
from grpc import aio

from headgate.credentials import Look, Shown
from headgate.errors import UnauthenticatedError, VersionError, connection_closed
from headgate.failures import Failure
from headgate_proto import handshake
from headgate_proto.api.v1 import errors_pb2 as wire
from headgate_proto.lookups import lookup_options

_STREAMS_A_CONNECTION = 64
"""Servers and proxies often allow 100 and silently queue further ones."""
_OPTIONS = [
    ("grpc.max_send_message_length", 16 * 1024 * 1024),
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    # Finds a silent connection, as to a machine that is gone, after 4.5 s: before its tables have another owner, as a lease lasts
    # 5 s. Servers take more than a ping in 2 s for an attack.
    ("grpc.keepalive_time_ms", 2_500),
    ("grpc.keepalive_timeout_ms", 2_000),
    # What ends the connection in fact, by default after a minute, whatever the line before says.
    ("grpc.http2.ping_timeout_ms", 2_000),
    # Otherwise the connection to a lost coordinator, which is used now and then, is found out only when a writer is lost, too.
    ("grpc.keepalive_permit_without_calls", 1),
    # Of a silent stream, too: without it gRPC sends two pings between two messages, then one a minute.
    ("grpc.http2.max_pings_without_data", 0),
    # gRPC's default pauses between attempts to connect, 1 to 120 s, are longer than ours between calls.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    *lookup_options(),
    ("grpc.enable_retries", 0),
    # A web proxy does not know the writers' own addresses.
    ("grpc.enable_http_proxy", 0),
    # Otherwise channels to one address share one connection, and the bound on streams has no effect.
    ("grpc.use_local_subchannel_pool", 1),
]

_CONNECT_MS: Final = (400, 900, 2_000, 5_000)
"""How long an attempt to connect may take, the handshake of TLS included: the next step after two that took longer. It begins
with little, as a Service of Kubernetes goes on to send connections to a lost machine for some 40 s."""
_ATTEMPTS: Final = 2
_AFTER_SUCCESS: Final = 1
"""The step that stays: an address that is slow from here is slow the next time, too."""


@dataclass(slots=True)
class _Connection:
    """``links``: those that use it now. ``streams``: how many of them count against the bound. ``used``: a link has ended."""

    channel: aio.Channel
    links: int = 0
    streams: int = 0
    used: bool = False

    @property
    def is_lost(self) -> bool:
        """Whether it has been closed, or broke."""
        return self.used and self.channel.get_state() is grpc.ChannelConnectivity.IDLE


@dataclass(frozen=True, slots=True)
class Link:
    """One call's, or one stream's, way to the server at ``address``. ``shown``: what it shows there."""

    transport: "Transport"
    address: str
    channel: aio.Channel
    metadata: Sequence[tuple[str, str]] = field(repr=False)
    shown: Shown

    @property
    def has_tls(self) -> bool:
        return self.shown.pem is not None

    def judged(self, failure: Failure) -> Failure:
        """The call's failure; one to be tried again at this server if what it showed is not known any more, and was renewed.

        A connection that leads to nobody takes no further calls. One that broke is gRPC's to make again.
        """
        if failure.lost_server and self.channel.get_state() is grpc.ChannelConnectivity.READY:
            self.transport.abandon(self)
        if failure.connected_too_late:
            self.transport.note_late(self)
        if isinstance(failure.error, UnauthenticatedError) and self.transport.renewed() != self.shown:
            return replace(failure, action=wire.ACTION_RESUME, address=self.address)
        return failure


@dataclass(slots=True)
class Transport:
    """Connections by address, on one event loop.

    ``look``: what calls show now. Once it is renewed, a new connection takes the calls and streams that begin, as gRPC does not
    take other files for one that it has; those of the older one go on, and it is closed behind the last.
    ``given``: addresses that the program gave. ``front``: the one of them behind which all servers are, as they cannot be reached
    at their own addresses; empty: they can. ``is_closed``: no call or stream may begin any more.
    """

    look: Look
    given: Sequence[str] = ()
    front: str = ""
    is_closed: bool = False
    shown: Shown = field(init=False)
    _connections: dict[str, list[_Connection]] = field(default_factory=dict)
    _late: dict[str, int] = field(default_factory=dict)
    """By address: how many attempts to connect took too long."""
    _older: list[_Connection] = field(default_factory=list)
    _closing: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.shown = self.look()

    def renewed(self) -> Shown:
        """What calls show from now on."""
        before, self.shown = self.shown, self.look()
        if self.shown.pem != before.pem:
            self._older += [each for connections in self._connections.values() for each in connections]
            self._connections.clear()
            self._close_unused()
        return self.shown

    @contextlib.contextmanager
    def link(self, address: str, *, streams: int = 0) -> Iterator[Link]:
        """For one call or stream to the server at ``address``, until the context ends; ``streams``: 1 if it is one.

        Raises ClosedError.
        """
        self.check_open()
        shown = self.renewed()
        connection = self._with_room(self._dialled(address))
        connection.links += 1
        connection.streams += streams
        try:
            yield Link(self, address, connection.channel, self._metadata(address), shown)
        finally:
            connection.links -= 1
            connection.streams -= streams
            connection.used = True
            self._close_unused()

    def abandon(self, link: Link) -> None:
        """Calls and streams that begin get another connection than the link's; those that it carries go on.

        A Service of Kubernetes leads a connection to one pod for good. While that pod ends, the proxy in front of its server goes
        on and fails each call, until it ends, too; a new connection leads to a pod that is ready. Price: a TLS handshake for each
        such failure.
        """
        connections = self._connections.get(self._dialled(link.address), [])
        for connection in [each for each in connections if each.channel is link.channel]:
            connections.remove(connection)
            self._older.append(connection)

    def note_late(self, link: Link) -> None:
        """An attempt to connect took too long. gRPC makes the next one to the address that it knows already: a lookup of the name
        may have to wait for a DNS server that was lost, too. A connection with more time is another one.
        """
        dialled = self._dialled(link.address)
        if all(each.channel is not link.channel for each in self._connections.get(dialled, [])):
            return
        self._late[dialled] = min(self._late.get(dialled, 0) + 1, _ATTEMPTS * len(_CONNECT_MS) - 1)
        if not self._late[dialled] % _ATTEMPTS:
            self.abandon(link)

    def check_open(self) -> None:
        """Raises ClosedError."""
        if self.is_closed:
            raise connection_closed()

    def answered(self, address: str, metadata: aio.Metadata | None, *, heard: bool = True) -> str:
        """Notes what the first metadata of an answer say (``headgate_proto.handshake``); ``address``: whom the call was for.

        ``heard``: the server has answered, so that one which says no version has none. Returns the server's own address; "" if it
        does not say it. Raises VersionError.
        """
        said = handshake.by_key(metadata)
        server = str(said.get(handshake.SERVER, ""))
        dialled = self._dialled(address)
        if metadata and dialled in self._late:
            self._late[dialled] = min(self._late[dialled] // _ATTEMPTS, _AFTER_SUCCESS) * _ATTEMPTS
        if server and dialled in self.given and (self.front or handshake.FRONT in said):
            self.front = dialled
        if heard or handshake.PROTOCOL in said:
            check_version(said, address)
        return server

    async def close(self) -> None:
        """Ends all calls and streams."""
        self.is_closed = True
        connections = [*self._older, *(each for known in self._connections.values() for each in known)]
        self._older.clear()
        self._connections.clear()
        for connection in connections:
            await connection.channel.close()
        await asyncio.gather(*self._closing)

    def _close_unused(self) -> None:
        """Of the older ones."""
        for connection in [each for each in self._older if not each.links]:
            self._older.remove(connection)
            self._closing.add(closing := asyncio.get_running_loop().create_task(connection.channel.close()))
            closing.add_done_callback(self._closing.discard)

    def _metadata(self, address: str) -> list[tuple[str, str]]:
        dialled = self._dialled(address)
        said = [(handshake.PROTOCOL, str(handshake.VERSION)), (handshake.DIALLED, dialled)]
        if dialled != address:
            said.append((handshake.TARGET, address))
        if self.shown.token:
            said.append(("authorization", f"Bearer {self.shown.token}"))
        return said

    def _dialled(self, address: str) -> str:
        return address if address in self.given or not self.front else self.front

    def _with_room(self, address: str) -> _Connection:
        connections = self._connections.setdefault(address, [])
        if address not in self.given:  # a server's own, as of a pod: once it is back, its name may have another address
            for lost in [each for each in connections if each.is_lost]:
                connections.remove(lost)
                self._older.append(lost)
        for connection in connections:
            if connection.streams < _STREAMS_A_CONNECTION:
                return connection
        options = [*_OPTIONS, ("grpc.min_reconnect_backoff_ms", _CONNECT_MS[self._late.get(address, 0) // _ATTEMPTS])]
        if self.shown.pem is None:
            channel = aio.insecure_channel(address, options=options)
        else:
            channel = aio.secure_channel(address, self.shown.pem.credentials(), options=options)
        connections.append(_Connection(channel))
        return connections[-1]


def check_version(metadata: Mapping[str, object], address: str) -> None:
    """By what a server says in the first metadata of an answer. Raises VersionError."""
    other = handshake.version_in(metadata)
    if (wrong := handshake.skew(handshake.VERSION, other, "this SDK", f"the server at {address}")) is not None:
        raise VersionError(wrong[0], fix=wrong[1])
