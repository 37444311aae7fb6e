"""gRPC channels of one connection, with their options, TLS and token."""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from grpc import aio

from headgate.errors import (
    HeadgateError,
    InternalError,
    InvalidArgumentError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnavailableError,
    VersionError,
    from_wire,
)
from headgate.unreachable import why_unreachable
from headgate_proto import handshake
from headgate_proto.api.v1 import errors_pb2 as wire

_STREAMS_A_CONNECTION = 64
"""Servers and proxies often allow 100 and silently queue further ones."""
_OPTIONS = [
    ("grpc.max_send_message_length", 16 * 1024 * 1024),
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    # Detects a silently dead connection after 20 s. Servers treat more than one ping in 10 s as an attack.
    ("grpc.keepalive_time_ms", 15_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    # Of a silent stream, too: without it gRPC sends two pings between two messages, then one a minute.
    ("grpc.http2.max_pings_without_data", 0),
    # gRPC's default pauses between attempts to connect, 1 to 120 s, are longer than ours between calls.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.enable_retries", 0),
    # A web proxy does not know the writers' own addresses.
    ("grpc.enable_http_proxy", 0),
    # Otherwise channels to one address share one connection, and the bound on streams has no effect.
    ("grpc.use_local_subchannel_pool", 1),
]


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files: the trusted authorities and, for a cluster that knows clients by certificates, the client's own and its key.

    Without ``ca`` the system's authorities are trusted. The files are read once: connect again when the certificate is renewed::

        headgate.connect("headgate.example.org:7070", tls=headgate.Tls(ca="ca.pem"), token="my-token")
        headgate.connect("headgate.example.org:7070", tls=headgate.Tls("ca.pem", certificate="me.pem", key="me.key"))
    """

    ca: str | Path | None = None
    certificate: str | Path | None = None
    key: str | Path | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """GRPC's credentials. Raises OSError for a file that cannot be read, InvalidArgumentError for one without the other."""
        if bool(self.certificate) != bool(self.key):
            raise InvalidArgumentError("a client's certificate and its key belong together", fix="Give both, or none.")
        ca, certificate, key = (Path(path).read_bytes() if path else None for path in (self.ca, self.certificate, self.key))
        return grpc.ssl_channel_credentials(root_certificates=ca, private_key=key, certificate_chain=certificate)


@dataclass(slots=True)
class _Connection:
    channel: aio.Channel
    streams: int = 0


@dataclass(slots=True)
class Transport:
    """Connections by address, on one event loop.

    ``given``: addresses that the program gave. ``front``: the one of them behind which all servers are, as they cannot be reached
    at their own addresses; empty: they can.
    """

    credentials: grpc.ChannelCredentials | None
    token: str | None = field(repr=False)
    given: Sequence[str] = ()
    front: str = ""
    _connections: dict[str, list[_Connection]] = field(default_factory=dict)

    def metadata(self, address: str) -> list[tuple[str, str]]:
        """Of a call that is for the server at ``address``."""
        dialled = self._dialled(address)
        said = [(handshake.PROTOCOL, str(handshake.VERSION)), (handshake.DIALLED, dialled)]
        if dialled != address:
            said.append((handshake.TARGET, address))
        if self.token:
            said.append(("authorization", f"Bearer {self.token}"))
        return said

    def answered(self, address: str, metadata: aio.Metadata | None, *, heard: bool = True) -> str:
        """Notes what the first metadata of an answer say (``headgate_proto.handshake``); ``address``: whom the call was for.

        ``heard``: the server has answered, so that one which says no version has none. Returns the server's own address; "" if it
        does not say it. Raises VersionError.
        """
        said = dict(metadata or ())
        server = str(said.get(handshake.SERVER, ""))
        dialled = self._dialled(address)
        if server and dialled in self.given and (self.front or handshake.FRONT in said):
            self.front = dialled
        if heard or handshake.PROTOCOL in said:
            check_version(said, address)
        return server

    def unary(self, address: str) -> aio.Channel:
        """A gRPC channel for single calls."""
        return self._with_room(self._dialled(address)).channel

    @contextlib.asynccontextmanager
    async def stream(self, address: str) -> AsyncIterator[aio.Channel]:
        """A gRPC channel for one stream, which counts against the connection's bound until the context ends."""
        connection = self._with_room(self._dialled(address))
        connection.streams += 1
        try:
            yield connection.channel
        finally:
            connection.streams -= 1

    async def close(self) -> None:
        for connections in self._connections.values():
            for connection in connections:
                await connection.channel.close()
        self._connections.clear()

    def _dialled(self, address: str) -> str:
        return address if address in self.given or not self.front else self.front

    def _with_room(self, address: str) -> _Connection:
        connections = self._connections.setdefault(address, [])
        for connection in connections:
            if connection.streams < _STREAMS_A_CONNECTION:
                return connection
        if self.credentials is None:
            channel = aio.insecure_channel(address, options=_OPTIONS)
        else:
            channel = aio.secure_channel(address, self.credentials, options=_OPTIONS)
        connections.append(_Connection(channel))
        return connections[-1]


def check_version(metadata: Mapping[str, object], address: str) -> None:
    """By what a server says in the first metadata of an answer. Raises VersionError."""
    other = handshake.version_in(metadata)
    if (wrong := handshake.skew(handshake.VERSION, other, "this SDK", f"the server at {address}")) is not None:
        raise VersionError(wrong[0], fix=wrong[1])


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call or stream ended, and the action that the server asked for."""

    error: HeadgateError
    action: "wire.Action.ValueType"
    address: str = ""
    retry_after: float = 0.0
    code: "wire.Code.ValueType" = wire.CODE_UNSPECIFIED
    unknown_outcome: bool = False
    unreachable: bool = False
    """There is certainly no way to the server now: nobody listens, the name is not known, one side alone speaks TLS, …"""


def failure_of(error: wire.Error) -> Failure:
    """The failure that a server's error describes."""
    return Failure(from_wire(error), error.action, error.address, error.retry_after_ms / 1000, error.code)


def failure_of_status(
    status: grpc.StatusCode, details: str, trailing: aio.Metadata | None, address: str, *, tls: bool = False
) -> Failure:
    """The failure behind a gRPC status. Without a Headgate error in its metadata it comes from gRPC itself or from a proxy."""
    for key, value in trailing or ():
        if key == "headgate-error-bin" and isinstance(value, bytes):
            said = wire.Error.FromString(value)
            if said.code == wire.CODE_UNAUTHENTICATED:
                said.message = f"{address}: {said.message}"
            return failure_of(said)
    if status is grpc.StatusCode.UNAVAILABLE and (why := why_unreachable(details, tls=tls)) is not None:
        error = UnavailableError(f"{address}: {why.cause}", fix=why.fix)
        return Failure(error, wire.ACTION_RETRY, unreachable=True)
    what = f"{address}: {status.name} {details}".rstrip()
    if status is grpc.StatusCode.UNAUTHENTICATED:
        return Failure(UnauthenticatedError(what, fix="Use a token that the cluster knows."), wire.ACTION_GIVE_UP)
    if status is grpc.StatusCode.PERMISSION_DENIED:
        return Failure(PermissionDeniedError(what, fix="Use a token whose principal may do this."), wire.ACTION_GIVE_UP)
    if status in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INVALID_ARGUMENT):
        return Failure(InternalError(what, fix="Check that the server is Headgate, of this version."), wire.ACTION_GIVE_UP)
    unavailable = UnavailableError(what, fix="Check that the cluster runs and is reachable from here.")
    return Failure(unavailable, wire.ACTION_RETRY, unknown_outcome=True)
