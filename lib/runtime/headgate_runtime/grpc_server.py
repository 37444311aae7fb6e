"""The gRPC server of a service: callers, errors, health, TLS, limits. No reflection, no channelz."""

import asyncio
from contextvars import ContextVar
from typing import Any

import grpc
import structlog
from google.protobuf.internal import api_implementation
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.door import Context, Door, Serve
from headgate_runtime.errors import METADATA_KEY, RpcError, rpc_error, status_of
from headgate_runtime.limits import DoorLimits, server_options
from headgate_runtime.peers import PeerRule, certificate_rule, peer_of, peer_rule
from headgate_runtime.principals import ANONYMOUS, Principals, ServicesOnly
from headgate_runtime.requests import RequestReader
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.tls import server_credentials
from headgate_runtime.values import Address
from headgate_runtime.world import Clock, Ids, SystemClock, SystemIds

_principal: ContextVar[str] = ContextVar("principal", default=ANONYMOUS)
_log = structlog.get_logger()


def principal(context: object) -> str:  # noqa: ARG001 - says whose, and leaves room for another way
    """Who makes this call; "anonymous" without tokens. For servicer methods: it is that of the task that serves the call."""
    return _principal.get()


class Server:
    """Register servicers on ``grpc``, and those for services on ``cluster``, before ``start``.

    ``address`` and ``cluster_address``: where they are served once it has started.
    Raises RuntimeError if protobuf runs without its C implementation (CVE-2025-4565, and every message costs a hundred times
    more), OSError or ValueError if the files that the settings name are wrong.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        *,
        limits: DoorLimits | None = None,
        ids: Ids | None = None,
        clock: Clock | None = None,
    ) -> None:
        if api_implementation.Type() != "upb":
            raise RuntimeError("protobuf runs in pure Python here; install its wheel for this platform")
        limits, ids = limits or DoorLimits(), ids or SystemIds()
        door, requests = Door(limits), RequestReader(clock or SystemClock())
        self.budget = door.budget
        self.grpc = _server(_Guard(Principals(settings), peer_rule(settings), door, requests, ids), limits)
        self.cluster = self.grpc
        """For what services call of each other; with `cluster_listen` a server of its own, which only their certificates open."""
        if settings.cluster_listen:
            rule = certificate_rule(settings.cluster_domain)
            self.cluster = _server(_Guard(ServicesOnly(), rule, Door(limits), requests, ids), limits)
        self.address = self.cluster_address = ""
        self.health = Health(self.grpc)
        self._settings = settings

    async def start(self) -> str:
        """Serves from now on; returns the host:port really bound. Raises OSError if the address is taken."""
        settings = self._settings
        credentials = server_credentials(settings.tls_cert, settings.tls_key) if settings.tls_cert else None
        self.address = self.cluster_address = _listen(self.grpc, settings.listen, credentials)
        if self.cluster is not self.grpc:
            own = server_credentials(settings.cluster_cert, settings.cluster_key, settings.cluster_ca)
            self.cluster_address = _listen(self.cluster, settings.cluster_listen, own)
            await self.cluster.start()
        await self.health.begin()
        await self.grpc.start()
        return self.address

    async def stop(self, grace_s: float) -> None:
        """Health says not serving, new calls are refused, running ones have ``grace_s`` seconds."""
        await self.health.stop()
        async with asyncio.TaskGroup() as tasks:
            for server in {self.grpc, self.cluster}:
                tasks.create_task(server.stop(grace_s))


class Health:
    """The standard health service; "" is the process as a whole. Reports not serving until ``set``."""

    def __init__(self, server: grpc.aio.Server) -> None:
        self._servicer = health_aio.HealthServicer()
        self._told = False
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def set(self, serving: bool, *services: str) -> None:
        """For the process and the named services ("headgate.api.v1.IngestService")."""
        self._told = True
        status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        for service in ("", *services):
            await self._servicer.set(service, status)

    async def begin(self) -> None:
        """Before the server answers: grpcio's servicer would say serving by itself."""
        if not self._told:
            await self.set(False)

    async def stop(self) -> None:
        """Not serving, for good."""
        await self._servicer.enter_graceful_shutdown()


class _Guard(grpc.aio.ServerInterceptor):
    """Before each call: who is it, and may it be made from there (``rule``). Around it: errors become status and
    trailing metadata.
    """

    def __init__(self, principals: Principals, rule: PeerRule, door: Door, requests: RequestReader, ids: Ids) -> None:
        self._principals = principals
        self._rule = rule
        self._door = door
        self._requests = requests
        self._ids = ids

    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        """Runs when a call's headers are there. A refused call gets a handler that reads nothing of it."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        try:
            metadata = dict(handler_call_details.invocation_metadata or ())
            caller = self._principals.of(handler_call_details.method, metadata.get("authorization"))
        except RpcError as refused:
            return self._refusal(refused)
        handler = handler._replace(request_deserializer=self._requests.of_method(handler_call_details.method))
        serving = self._door.serve(handler, handler_call_details.method, caller)
        return serving._replace(stream_stream=self._guarded(serving.stream_stream, handler_call_details.method, caller))

    def _refusal(self, refused: RpcError) -> Any:
        """A streaming handler, also of a unary method, whose whole request gRPC would read before it calls the handler."""

        async def refuse(_requests: object, context: Context) -> None:
            await self._abort(context, refused)

        return grpc.stream_stream_rpc_method_handler(refuse)

    def _guarded(self, serve: Serve, method: str, caller: str) -> Serve:
        async def guarded(requests: object, context: Context) -> None:
            try:
                if (refusal := self._rule(method, peer_of(context))) is not None:
                    raise RpcError(refusal)
                _principal.set(caller)
                await serve(requests, context)
            except grpc.aio.BaseError:
                raise
            except Exception as e:  # noqa: BLE001 - the boundary: it is logged and becomes CODE_INTERNAL
                await self._abort(context, _only_rpc_error(e) or self._internal(e, method))

        return guarded

    async def _abort(self, context: Context, refusal: RpcError) -> None:
        trailing = ((METADATA_KEY, refusal.error.SerializeToString()),)
        await context.abort(status_of(refusal.error), refusal.error.message, trailing)

    def _internal(self, error: Exception, method: str) -> RpcError:
        """What was not foreseen stays in the log, under an id; the client gets the id and no details."""
        request_id = self._ids.token()
        _log.error("call failed", method=method, request_id=request_id, exc_info=error)
        return rpc_error(
            errors_pb2.CODE_INTERNAL, f"internal error, request {request_id}", "Give this id to the operators of the cluster."
        )


def _server(guard: _Guard, limits: DoorLimits) -> grpc.aio.Server:
    server = grpc.aio.server(interceptors=[guard], options=server_options(limits))
    # Calls of registered methods would wait in a queue of each method, and the limit of calls that wait holds for a queue.
    server.add_registered_method_handlers = _leave_unregistered  # type: ignore[method-assign]
    return server


def _listen(server: grpc.aio.Server, listen: str, credentials: grpc.ServerCredentials | None) -> str:
    """Returns the host:port really bound. Raises OSError."""
    address = Address.parse(listen)
    try:
        port = server.add_secure_port(listen, credentials) if credentials else server.add_insecure_port(listen)
    except RuntimeError as e:
        raise OSError(f"cannot listen on {address}; is another process there?") from e
    return str(address._replace(port=port))


def _leave_unregistered(service_name: str, method_handlers: object) -> None:
    """The generic handlers, which are registered besides, serve the same."""


def _only_rpc_error(error: BaseException) -> RpcError | None:
    """The RpcError that ended a task group; None if anything else was in it."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, RpcError) else None
