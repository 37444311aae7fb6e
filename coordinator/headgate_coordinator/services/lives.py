"""The part of MaintenanceService that ends tables and names, and brings tables back."""

import structlog
from grpc.aio import ServicerContext

from headgate_coordinator.services.drops import Drops
from headgate_coordinator.services.operator_errors import answered
from headgate_coordinator.services.renames import Renames
from headgate_coordinator.services.storage_calls import StorageCalls
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_proto.api.v1 import maintenance_pb2_grpc as rpc
from headgate_runtime.access.rights import Right
from headgate_runtime.errors import rpc_error
from headgate_runtime.grpc_server import call, principal

_log = structlog.get_logger()


class LivesService(StorageCalls, rpc.MaintenanceServiceServicer):
    """Of any table; those of others are refused with who has them."""

    async def Drop(
        self, request: api.DropRequest, context: ServicerContext[api.DropRequest, api.DropResponse]
    ) -> api.DropResponse:
        name, caller = request.table, principal(context)
        log_request(caller, name, "drop", table_uuid=request.table_uuid, plan_only=request.plan_only, grace_ms=request.grace_ms)
        _check_uuid_given(request.table_uuid)
        return await answered(Drops(self._state, self._storage, self._blocking, self._created).answer(request, caller))

    async def Undrop(
        self, request: api.UndropRequest, context: ServicerContext[api.UndropRequest, api.UndropResponse]
    ) -> api.UndropResponse:
        log_request(principal(context), request.table, "undrop")
        drops = Drops(self._state, self._storage, self._blocking, self._created)
        return await answered(drops.bring_back(request.table, principal(context)))

    async def Rename(
        self, request: api.RenameRequest, context: ServicerContext[api.RenameRequest, api.RenameResponse]
    ) -> api.RenameResponse:
        caller = call(context)
        log_request(caller.identity.principal, request.table, "rename", table_uuid=request.table_uuid, to=request.to)
        _check_uuid_given(request.table_uuid)
        if not caller.may(Right.CREATE, request.to):
            raise rpc_error(
                errors_pb2.CODE_PERMISSION_DENIED,
                f"the new name takes the right create on {request.to!r}",
                "Ask the operators of the cluster for it, or choose a name on which you have it.",
            )
        renames = Renames(self._state, self._storage, self._blocking, self._created)
        return await answered(renames.answer(request, caller.identity.principal))


def log_request(caller: str, table: str, what: str, **details: object) -> None:
    """One line for each request of an operator."""
    _log.info("request of an operator", table=table, request=what, principal=caller, **details)


def _check_uuid_given(table_uuid: str) -> None:
    if not table_uuid:
        raise rpc_error(
            errors_pb2.CODE_INVALID_ARGUMENT, "the request does not say which table it means", "Send the `table_uuid`, too."
        )
