"""Connections to other services, with TLS and the cluster's token from the settings, and the same limits everywhere."""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc

from headgate_runtime.limits import CLIENT_OPTIONS
from headgate_runtime.settings import ServiceSettings


def connect(address: str, settings: ServiceSettings) -> grpc.aio.Channel:
    """Returns a channel to the service at ``address`` (host:port). It connects at the first call; the caller closes it.

    With ``tls_ca`` the server needs a certificate of that authority. Raises OSError if the file cannot be read.
    """
    if settings.tls_ca:
        trusted = grpc.ssl_channel_credentials(root_certificates=Path(settings.tls_ca).read_bytes())
        channel = grpc.aio.secure_channel(address, trusted, options=CLIENT_OPTIONS)
    else:
        channel = grpc.aio.insecure_channel(address, options=CLIENT_OPTIONS)
    token = settings.cluster_token.get_secret_value()
    return _Authorised(channel, token) if token else channel


class _Authorised(grpc.aio.Channel):
    """Adds the token to every call.

    Not an interceptor: grpcio passes each message of an intercepted stream through a queue. Not call credentials: grpcio
    refuses them without TLS, which services on one machine do without.
    """

    def __init__(self, channel: grpc.aio.Channel, token: str) -> None:
        self._channel = channel
        self._metadata = (("authorization", f"Bearer {token}"),)

    def _with_token(self, call: Callable[..., Any]) -> Any:
        def authorised(*arguments: Any, metadata: Any = None, **named: Any) -> Any:
            return call(*arguments, metadata=(*(metadata or ()), *self._metadata), **named)

        return authorised

    def unary_unary(self, *arguments: Any, **named: Any) -> Any:
        return self._with_token(self._channel.unary_unary(*arguments, **named))

    def unary_stream(self, *arguments: Any, **named: Any) -> Any:
        return self._with_token(self._channel.unary_stream(*arguments, **named))

    def stream_unary(self, *arguments: Any, **named: Any) -> Any:
        return self._with_token(self._channel.stream_unary(*arguments, **named))

    def stream_stream(self, *arguments: Any, **named: Any) -> Any:
        return self._with_token(self._channel.stream_stream(*arguments, **named))

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
