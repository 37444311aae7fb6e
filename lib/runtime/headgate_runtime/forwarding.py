"""Calls for another coordinator, passed on to it unread. A client behind one front address cannot choose whom it reaches."""

from collections.abc import AsyncIterator, Callable
from typing import Any, NoReturn

import grpc

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.handshake import FORWARDED, TARGET
from headgate_runtime.channels import RenewedChannel
from headgate_runtime.door import Context, MetadataOf
from headgate_runtime.errors import METADATA_KEY, RpcError, rpc_error
from headgate_runtime.peers import ServiceKind
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.values import Address

Route = Callable[[str], str | None]
"""From a coordinator's address for clients to the one for services; None for an address that calls need not be passed on to."""


def nowhere(_target: str) -> None:
    """The route of a server that passes nothing on."""


class Forwarder:
    """Passes calls on with the client's own credentials, so that the other coordinator decides about them, and writes its audit
    line. ``headgate-forwarded`` of them names the client; nothing that was passed on is passed on again.
    """

    def __init__(self, settings: ServiceSettings, route: Route, metadata_of: MetadataOf) -> None:
        self._settings = settings
        self._route = route
        self._metadata_of = metadata_of
        self._links: dict[str, RenewedChannel] = {}

    def address_for(self, context: Context) -> str | None:
        """Where services reach the coordinator that is to answer the call; None: this process answers it."""
        target = self._metadata_of(context).get(TARGET)
        return None if target is None else self._route(str(target))

    def handler(self, path: str) -> Any:
        """What serves calls of ``path`` for which there is an ``address_for``."""

        async def forward(request: bytes, context: Context) -> AsyncIterator[bytes]:
            authorization = str(self._metadata_of(context).get("authorization", ""))
            if not authorization and "x509_pem_cert" in context.auth_context():
                raise _without_token()
            address = self.address_for(context)
            if address is None:  # it has just gone
                raise rpc_error(errors_pb2.CODE_UNAVAILABLE, "no such coordinator lives just now", "Send the same again shortly.")
            link = self._link(address, authorization)
            passed = [(FORWARDED, context.peer())]
            if authorization:
                passed.append(("authorization", authorization))
            method: Any = (await link.renewed()).unary_stream(path)
            call = method(request, metadata=passed, timeout=context.time_remaining())
            try:
                async for answer in call:
                    yield answer
            except grpc.aio.AioRpcError as failed:
                await _fail(failed, context)
            finally:
                call.cancel()

        return grpc.unary_stream_rpc_method_handler(forward, request_deserializer=bytes, response_serializer=bytes)

    async def close(self) -> None:
        """Ends what is being passed on."""
        for link in self._links.values():
            await link.close()

    def _link(self, address: str, authorization: str) -> RenewedChannel:
        settings = self._settings
        if authorization and not (settings.cluster_cert or settings.tls_ca or Address.parse(address).is_loopback):
            raise rpc_error(
                errors_pb2.CODE_UNAVAILABLE,
                "coordinators cannot pass calls on to each other: a token would travel in plaintext",
                "Give coordinators cluster_cert, cluster_key and cluster_ca, or tls_ca.",
            )
        if address not in self._links:
            self._links[address] = RenewedChannel(address, settings, ServiceKind.COORDINATOR, with_token=False)
        return self._links[address]


def or_bytes(serialize: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Serializes answers of this process's own servicer, and takes those of another as they are."""
    return lambda answer: answer if isinstance(answer, bytes) else serialize(answer)


def _without_token() -> RpcError:
    """A certificate proves an identity on its own connection, and coordinators vouch for no client."""
    return rpc_error(
        errors_pb2.CODE_UNAUTHENTICATED,
        "another coordinator has to answer this call, and a client's certificate cannot be passed on to it",
        "Send a token, too, or reach coordinators at their own addresses (no front).",
    )


async def _fail(failed: grpc.aio.AioRpcError, context: Context) -> NoReturn:
    """As the other coordinator's error. A call that broke off has no error of Headgate's here either: it may have been carried
    out, and clients have to know that.
    """
    trailing = failed.trailing_metadata()
    carried = trailing.get(METADATA_KEY) if trailing is not None else None
    if isinstance(carried, bytes):
        raise RpcError(errors_pb2.Error.FromString(carried))
    await context.abort(failed.code(), f"the coordinator that the call was passed on to: {failed.details()}")
    raise AssertionError("abort raises")
