"""Why a call or a stream ended: what the server said, or what gRPC or a proxy says in its place."""

from dataclasses import dataclass

import grpc
from grpc import aio

from headgate.errors import (
    HeadgateError,
    InternalError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnavailableError,
    from_wire,
)
from headgate.unreachable import connected_too_late, had_connection, why_unreachable
from headgate_proto.api.v1 import errors_pb2 as wire


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
    lost_server: bool = False
    """It had a connection, which broke or leads to nobody: a new one to the same address may lead to another server."""
    connected_too_late: bool = False
    """There was no connection yet when the time for one was over."""


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
    unavailable = status is grpc.StatusCode.UNAVAILABLE
    late = unavailable and connected_too_late(details)
    if unavailable and (why := why_unreachable(details, tls=tls)) is not None:
        error = UnavailableError(f"{address}: {why.cause}", fix=why.fix)
        return Failure(error, wire.ACTION_RETRY, unreachable=True, connected_too_late=late)
    what = f"{address}: {status.name} {details}".rstrip()
    if status is grpc.StatusCode.UNAUTHENTICATED:
        return Failure(UnauthenticatedError(what, fix="Use a token that the cluster knows."), wire.ACTION_GIVE_UP)
    if status is grpc.StatusCode.PERMISSION_DENIED:
        return Failure(PermissionDeniedError(what, fix="Use a token whose principal may do this."), wire.ACTION_GIVE_UP)
    if status in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INVALID_ARGUMENT):
        return Failure(InternalError(what, fix="Check that the server is Headgate, of this version."), wire.ACTION_GIVE_UP)
    error = UnavailableError(what, fix="Check that the cluster runs and is reachable from here.")
    lost = unavailable and had_connection(details)
    return Failure(error, wire.ACTION_RETRY, unknown_outcome=True, lost_server=lost, connected_too_late=late)
