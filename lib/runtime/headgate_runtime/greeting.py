"""What a server says of itself before it answers a call (``headgate_proto.handshake``)."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from inspect import isasyncgenfunction
from typing import Any

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.handshake import DIALLED, FRONT, PROTOCOL, SERVER, VERSION, skew, version_in
from headgate_runtime.access.call import Metadata
from headgate_runtime.door import Context, MetadataOf
from headgate_runtime.errors import rpc_error

_KINDS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")


@dataclass(slots=True)
class Greeting:
    """``front``: addresses of proxies, of which clients that dialled one have to keep. ``address``: the server's, for clients."""

    front: frozenset[str] = frozenset()
    address: str = ""

    def answer(self, asked: Metadata) -> tuple[tuple[str, str], ...]:
        """The initial metadata of the answer to a call with the metadata ``asked``."""
        said = ((SERVER, self.address), (PROTOCOL, str(VERSION)))
        return (*said, (FRONT, "1")) if asked.get(DIALLED) in self.front else said


def check_version(metadata: Metadata) -> None:
    """Whether this server understands a caller with these metadata. Raises RpcError."""
    if (wrong := skew(VERSION, version_in(metadata), "this server", "the caller")) is not None:
        raise rpc_error(errors_pb2.CODE_VERSION, *wrong)


def version_refusal(metadata: Mapping[str, Any]) -> str:
    """Why this service does not understand the server whose answer begins with these metadata; "" if it does."""
    return ". ".join(skew(VERSION, version_in(metadata), "this service", "the server") or ())


def greeted(handler: Any, greeting: Greeting, metadata_of: MetadataOf) -> Any:
    """The same gRPC handler, which greets before it does anything else. A client of a stream hears it at once."""
    (kind,) = (each for each in _KINDS if getattr(handler, each) is not None)
    serve = getattr(handler, kind)

    async def greet(context: Context) -> None:
        await context.send_initial_metadata(greeting.answer(metadata_of(context)))

    async def one(request: object, context: Any) -> Any:
        await greet(context)
        return await serve(request, context)

    async def several(request: object, context: Any) -> AsyncIterator[Any]:
        await greet(context)
        async with aclosing(serve(request, context)) as answers:
            async for answer in answers:
                yield answer

    return handler._replace(**{kind: several if isasyncgenfunction(serve) else one})
