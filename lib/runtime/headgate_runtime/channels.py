"""Connections to other services, with TLS and the cluster's token from the settings, and the same limits everywhere."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import grpc

from headgate_proto.handshake import PROTOCOL, VERSION
from headgate_runtime.limits import CLIENT_OPTIONS
from headgate_runtime.peers import ServiceKind, server_name
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.tls import channel_credentials, channel_files
from headgate_runtime.values import Address


def connect(address: str, settings: ServiceSettings, kind: ServiceKind = ServiceKind.COORDINATOR) -> grpc.aio.Channel:
    """A channel to the service of this kind at ``address`` (host:port). It connects with the first call; close it when done.

    With `cluster_cert` both sides show certificates, and the server's has to name the kind; with `tls_ca` the server's names its
    host. Raises OSError if a file cannot be read, UnsafeAddressError.
    """
    return _channel(address, settings, kind, channel_files(settings), settings.cluster_token.get_secret_value())


class RenewedChannel:
    """A channel to one address, in whose place comes a new one when the PEM files have changed: gRPC reads them once.

    Calls of the older channel go on, as a control stream lasts as long as its service; it is closed when a third one comes. So a
    connection outlives one renewal of its certificate, and not two.

    ``with_token``: calls bring the cluster's token, if there is one.
    """

    def __init__(self, address: str, settings: ServiceSettings, kind: ServiceKind, *, with_token: bool = True) -> None:
        self._address = address
        self._settings = settings
        self._kind = kind
        self._with_token = with_token
        self._files = channel_files(settings)
        self._older: grpc.aio.Channel | None = None
        self.channel = self._opened()

    async def renewed(self) -> grpc.aio.Channel:
        """The channel for the next call, by the files as they are now."""
        try:
            files = channel_files(self._settings)
        except OSError:
            files = self._files  # being replaced
        if files != self._files:
            self._files = files
            oldest, self._older = self._older, self.channel
            self.channel = self._opened()
            if oldest is not None:
                await oldest.close()
        return self.channel

    async def close(self) -> None:
        """Ends its calls."""
        if self._older is not None:
            await self._older.close()
        await self.channel.close()

    def _opened(self) -> grpc.aio.Channel:
        token = self._settings.cluster_token.get_secret_value() if self._with_token else ""
        return _channel(self._address, self._settings, self._kind, self._files, token)


class UnsafeAddressError(ValueError):
    """The cluster's token would leave this machine in plaintext."""


def _channel(
    address: str, settings: ServiceSettings, kind: ServiceKind, files: Sequence[bytes] | None, token: str
) -> grpc.aio.Channel:
    if files is None:
        if token and not Address.parse(address).is_loopback:
            raise UnsafeAddressError(
                f"cluster_token would go to {address} in plaintext: set cluster_cert, cluster_key and cluster_ca, or tls_ca"
            )
        channel = grpc.aio.insecure_channel(address, options=CLIENT_OPTIONS)
    else:
        name = server_name(kind, settings.cluster_domain)
        wanted = (("grpc.ssl_target_name_override", name),) if settings.cluster_cert else ()
        channel = grpc.aio.secure_channel(address, channel_credentials(files), options=(*CLIENT_OPTIONS, *wanted))
    return _Introduced(channel, token)


class _Introduced(grpc.aio.Channel):
    """Adds the version, and the token if there is one, to every call.

    Not an interceptor: grpcio passes each message of an intercepted stream through a queue. Not call credentials: grpcio
    refuses them without TLS, which services on one machine do without.
    """

    def __init__(self, channel: grpc.aio.Channel, token: str) -> None:
        self._channel = channel
        self._metadata: tuple[tuple[str, str], ...] = ((PROTOCOL, str(VERSION)),)
        if token:
            self._metadata += (("authorization", f"Bearer {token}"),)

    def _introduced(self, call: Callable[..., Any]) -> Any:
        def introduced(*arguments: Any, metadata: Any = None, **named: Any) -> Any:
            return call(*arguments, metadata=(*(metadata or ()), *self._metadata), **named)

        return introduced

    def unary_unary(self, *arguments: Any, **named: Any) -> Any:
        return self._introduced(self._channel.unary_unary(*arguments, **named))

    def unary_stream(self, *arguments: Any, **named: Any) -> Any:
        return self._introduced(self._channel.unary_stream(*arguments, **named))

    def stream_unary(self, *arguments: Any, **named: Any) -> Any:
        return self._introduced(self._channel.stream_unary(*arguments, **named))

    def stream_stream(self, *arguments: Any, **named: Any) -> Any:
        return self._introduced(self._channel.stream_stream(*arguments, **named))

    async def close(self, grace: float | None = None) -> None:
        await self._channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return self._channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._channel.channel_ready()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()
