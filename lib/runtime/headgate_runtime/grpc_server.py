"""The gRPC server of a service: callers, errors, health, TLS, limits. No reflection, no channelz."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import grpc
import structlog
from google.protobuf.internal import api_implementation

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.handshake import FORWARDED
from headgate_runtime.access.audit import NONE, AuditLog, audit_log
from headgate_runtime.access.call import Call, Metadata, admitted_call, refused_call
from headgate_runtime.access.control import AccessControl
from headgate_runtime.access.identity import CLUSTER, Credentials, Identity
from headgate_runtime.access.methods import HEALTH, method_access
from headgate_runtime.cancelling import is_cancelled
from headgate_runtime.certificates import check_certificates
from headgate_runtime.door import Context, Door, Serve
from headgate_runtime.errors import METADATA_KEY, RpcError, only_rpc_error, rpc_error, status_of
from headgate_runtime.forwarding import Forwarder, Route, nowhere, or_bytes
from headgate_runtime.greeting import Greeting, check_version, greeted
from headgate_runtime.health import Health
from headgate_runtime.limits import PROBES, DoorLimits, server_options
from headgate_runtime.listening import listen
from headgate_runtime.peers import FORWARDED_METHODS, PeerRule, certificate_rule, is_coordinator, peer_of, peer_rule
from headgate_runtime.requests import RequestReader
from headgate_runtime.running_calls import RunningCalls
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.tarpit import NO_METHOD, STRANGERS, Tarpit
from headgate_runtime.tls import server_credentials
from headgate_runtime.values import Address
from headgate_runtime.world import Clock, Ids, SystemClock, SystemIds

_call: ContextVar[Call] = ContextVar("call")
_log = structlog.get_logger()


def call(context: object) -> Call:  # noqa: ARG001 - says whose, and leaves room for another way
    """For servicer methods: who makes this call, and what it may do. It is that of the task that serves the call."""
    return _call.get()


def principal(context: object) -> str:
    """Who makes this call; "anonymous" where nobody has to say."""
    return call(context).identity.principal


def _sharer(context: Context) -> str:
    return call(context).sharer


def _metadata(context: Context) -> Metadata:
    return call(context).metadata


def _running(request: object, context: Context) -> AbstractContextManager[None]:
    return call(context).running(request)


class Server:
    """Register servicers on ``grpc``, and those for services on ``cluster``, before ``start``.

    ``address``, ``cluster_address`` and ``health_address``: where they are served once it has started ("": not). ``front``:
    addresses, host:port, of proxies; clients that dialled one are asked to call no other address. ``route``: of calls for another
    server (``forwarding``).
    Raises RuntimeError if protobuf runs without its C implementation (CVE-2025-4565, and every message costs a hundred times
    more), StartError if the access file or the audit log cannot be used.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        *,
        limits: DoorLimits | None = None,
        ids: Ids | None = None,
        clock: Clock | None = None,
        front: Sequence[str] = (),
        route: Route = nowhere,
    ) -> None:
        if api_implementation.Type() != "upb":
            raise RuntimeError("protobuf runs in pure Python here; install its wheel for this platform")
        limits, ids, clock = limits or DoorLimits(), ids or SystemIds(), clock or SystemClock()
        self._clock = clock
        self.access = AccessControl(settings, clock)
        self._audit = audit_log(settings.audit_log if settings.access else NONE, clock)
        tarpit = self.tarpit = Tarpit(clock, limits.waiting, settings.refusals)
        """Also for streams, which refuse in answers of theirs."""

        def door_of(own: DoorLimits) -> Door:
            return Door(own, _sharer, _running, tarpit)

        door, self.requests = door_of(limits), RequestReader(clock)
        self.budget = door.budget
        self._forwarder = Forwarder(settings, route, _metadata)
        self._greeting = Greeting(frozenset(front))
        self._running = RunningCalls()
        domain = settings.cluster_domain
        forwarder, greeting = self._forwarder, self._greeting
        parts = _Parts(self.access, self._audit, self.requests, ids, forwarder, greeting, domain, self._running, tarpit)
        self.grpc = _server(_Guard(parts, peer_rule(settings), door), limits)
        self.cluster = self.grpc
        """For what services call of each other; with `cluster_listen` a server of its own, which only their certificates open."""
        if settings.cluster_listen:
            rule = certificate_rule(domain)
            self.cluster = _server(_Guard(parts, rule, door_of(limits), CLUSTER), limits)
        self.address = self.cluster_address = self.health_address = ""
        self._probed = self.grpc
        if settings.health_listen:
            self._probed = _server(_Guard(parts, peer_rule(settings), door_of(PROBES)), PROBES)
        self.health = Health({self.grpc, self._probed})
        self._settings = settings

    async def start(self) -> str:
        """Serves from now on; returns the host:port really bound. Raises ListenError, StartError for certificates."""
        check_certificates(self._settings, self._clock.now_ms())
        await self.access.begin()
        settings = self._settings
        files = (settings.tls_cert, settings.tls_key, settings.client_ca)
        credentials = server_credentials(*files) if settings.tls_cert else None
        self.address = self.cluster_address = listen(self.grpc, Address.parse(settings.listen), credentials)
        self._greeting.address = settings.advertised(self.address)
        if self.cluster is not self.grpc:
            own = server_credentials(settings.cluster_cert, settings.cluster_key, settings.cluster_ca)
            self.cluster_address = listen(self.cluster, Address.parse(settings.cluster_listen), own)
            await self.cluster.start()
        await self.health.begin()
        if settings.health_listen:
            self.health_address = listen(self._probed, Address.parse(settings.health_listen), None)
            await self._probed.start()
        await self.grpc.start()
        return self.address

    async def stop(self, grace_s: float) -> None:
        """Health says not serving, new calls are refused, running ones have ``grace_s`` seconds."""
        await self.health.stop()
        async with asyncio.TaskGroup() as tasks:
            for server in {self.grpc, self.cluster, self._probed}:
                tasks.create_task(server.stop(grace_s))
        await self._running.wait()
        await self._forwarder.close()
        self._audit.close()


@dataclass(frozen=True, slots=True)
class _Parts:
    """What both servers of a process share. ``domain``: of the names in services' certificates."""

    access: AccessControl
    audit: AuditLog
    requests: RequestReader
    ids: Ids
    forwarder: Forwarder
    greeting: Greeting
    domain: str
    running: RunningCalls
    tarpit: Tarpit


class _Guard(grpc.aio.ServerInterceptor):
    """Before each call: who is it, may it be made from there (``rule``), and may it. Around it: errors become status and trailing
    metadata. ``identity``: that of every caller whom the rule lets in; None: by the call's credentials.
    """

    def __init__(self, parts: _Parts, rule: PeerRule, door: Door, identity: Identity | None = None) -> None:
        self._parts = parts
        self._rule = rule
        self._door = door
        self._identity = identity
        self._handlers: dict[str, Any] = {}
        """By path, of methods that are served."""
        refuse = self._guarded(self._refuse_method, "a method that is not there")
        self._no_method: grpc.RpcMethodHandler[object, object] = grpc.stream_stream_rpc_method_handler(refuse)

    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        """Runs when a call's headers are there."""
        path = handler_call_details.method
        if path not in self._handlers:
            handler = await continuation(handler_call_details)
            if handler is None:
                return self._no_method
            self._handlers[path] = self._handler(handler, path)
        return self._handlers[path]

    def _handler(self, handler: Any, path: str) -> Any:
        """What serves all calls of ``path``."""
        if path.startswith(HEALTH) or method_access(path) is not None:  # of others nothing is read
            handler = handler._replace(request_deserializer=self._parts.requests.of_method(path))
        if path.startswith(HEALTH):
            serving = self._door.serve(handler, path)
            return serving._replace(stream_stream=self._guarded(serving.stream_stream, path))
        serving = self._door.serve(greeted(handler, self._parts.greeting, _metadata), path)
        serve: Serve = serving.stream_stream
        if path in FORWARDED_METHODS:
            serve = self._forwarding(serve, path)
            serving = serving._replace(response_serializer=or_bytes(serving.response_serializer))
        return serving._replace(stream_stream=self._guarded(self._admitted(serve, path), path))

    async def _refuse_method(self, _requests: object, context: Context) -> None:
        await self._parts.tarpit.wait_in_a_place(NO_METHOD)
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "this server has no such method")

    def _forwarding(self, serve: Serve, path: str) -> Serve:
        """Serves a call of ``path`` here, or has another coordinator serve it."""
        forwarder = self._parts.forwarder
        handler = greeted(forwarder.handler(path), self._parts.greeting, _metadata)
        forward: Serve = self._door.serve(handler, path).stream_stream

        async def chosen(requests: object, context: Context) -> None:
            elsewhere = forwarder.address_for(context)
            await (serve if elsewhere is None else forward)(requests, context)

        return chosen

    def _admitted(self, serve: Serve, path: str) -> Serve:
        """Of a refused call nothing is read."""

        async def admitted(requests: object, context: Context) -> None:
            try:
                self._admit(path, context)
            except RpcError:
                await self._parts.tarpit.wait_in_a_place(STRANGERS)
                raise
            await serve(requests, context)

        return admitted

    def _admit(self, path: str, context: Context) -> None:
        """Makes the task's ``call``. Raises RpcError if its caller may not make it."""
        parts = self._parts
        metadata, peer = dict(context.invocation_metadata() or ()), peer_of(context)
        if (refusal := self._rule(path, peer)) is not None:
            raise refused_call(parts.audit, path, context.peer(), refusal)
        credentials = Credentials(str(metadata.get("authorization", "")), context.auth_context())
        origin, identity = context.peer(), self._identity
        if identity is not None and FORWARDED in metadata and is_coordinator(peer, parts.domain):
            # A client's call, passed on: the client's credentials count, not those of the coordinator.
            credentials, origin, identity = Credentials(credentials.authorization), str(metadata[FORWARDED]), None
        _call.set(admitted_call(parts.access, parts.audit, path, metadata, credentials, origin, identity))
        check_version(metadata)

    def _guarded(self, serve: Serve, path: str) -> Serve:
        async def guarded(requests: object, context: Context) -> None:
            self._parts.running.add()
            try:
                await serve(requests, context)
            except grpc.aio.BaseError:
                raise
            except asyncio.CancelledError:
                # Not of this call: of one that it made, and whose channel was closed. gRPC would send no status, and the client
                # would wait for ever.
                if not is_cancelled():
                    await self._abort(context, _lost())
                raise
            except Exception as e:  # noqa: BLE001 - the boundary: it is logged and becomes CODE_INTERNAL
                await self._abort(context, only_rpc_error(e) or self._internal(e, path))

        return guarded

    async def _abort(self, context: Context, refusal: RpcError) -> None:
        trailing = ((METADATA_KEY, refusal.error.SerializeToString()),)
        await context.abort(status_of(refusal.error), refusal.error.message, trailing)

    def _internal(self, error: Exception, method: str) -> RpcError:
        """What was not foreseen stays in the log, under an id; the client gets the id and no details."""
        request_id = self._parts.ids.token()
        _log.error("call failed", method=method, request_id=request_id, exc_info=error)
        return rpc_error(
            errors_pb2.CODE_INTERNAL, f"internal error, request {request_id}", "Give this id to the operators of the cluster."
        )


def _lost() -> RpcError:
    return rpc_error(errors_pb2.CODE_UNAVAILABLE, "a connection to another service was closed", "Send the same again shortly.")


def _server(guard: _Guard, limits: DoorLimits) -> grpc.aio.Server:
    server = grpc.aio.server(interceptors=[guard], options=server_options(limits))
    # Calls of registered methods would wait in a queue of each method, and the limit of calls that wait holds for a queue.
    server.add_registered_method_handlers = _leave_unregistered  # type: ignore[method-assign]
    return server


def _leave_unregistered(service_name: str, method_handlers: object) -> None:
    """The generic handlers, which are registered besides, serve the same."""
