"""One call: its identity, what it may do, and its line in the audit log."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.access.audit import AuditEntry, AuditLog
from headgate_runtime.access.control import AccessControl, refusal_error
from headgate_runtime.access.identity import CallerKind, Credentials, Identity, Unauthenticated
from headgate_runtime.access.methods import MethodAccess, method_access
from headgate_runtime.access.quotas import Usage
from headgate_runtime.access.rights import Denied, Right
from headgate_runtime.errors import RpcError

Metadata: TypeAlias = Mapping[str, Any]
"""Of a call, by name in lower case; text, or bytes where the name ends in "-bin"."""

_UNDECLARED: Final = Denied("nobody may call this method", "Call one whose contract says which right it wants.")
_LONGEST: Final = 256
"""Characters of one name or text of a request that the audit log keeps."""


@dataclass(frozen=True, slots=True)
class Call:
    """``peer``: the other end's address. ``path``: "/package.Service/Method". ``metadata``: what came with the call, which may be
    secret.
    """

    control: AccessControl
    audit: AuditLog
    path: str
    method: MethodAccess
    identity: Identity
    peer: str
    metadata: Metadata = field(repr=False)

    @property
    def sharer(self) -> str:
        """Calls of one principal share limits; where nobody has to say who it is, those of one connection."""
        return self.peer if self.identity.kind is CallerKind.ANONYMOUS else self.identity.principal

    def may(self, right: Right, table: str | None) -> bool:
        """``table`` None: on any table."""
        return self.control.decide(self.identity, right, table) is None

    def check(self, table: str | None, channel: str | None = None) -> None:
        """Whether the identity has the method's right on the table. Raises RpcError, and logs the refusal."""
        refusal = self.control.decide(self.identity, self.method.right, table, channel)
        if refusal is not None:
            error = refusal_error(refusal)
            self.log(_outcome(error), table, channel, refused=True)
            raise RpcError(error)

    def running(self, request: object) -> AbstractContextManager[None]:
        """Around the servicer. One that reads a stream of requests names the table itself (``on_table``); here it is asked
        whether the caller may call the method at all.
        """
        if self.method.streams or not isinstance(request, Message):
            self.check(None)
            return contextlib.nullcontext()
        return self.on_table(self.method.table_of(request), request=request)

    @contextlib.contextmanager
    def on_table(self, table: str | None, channel: str | None = None, *, request: Message | None = None) -> Iterator[None]:
        """Around what the call does to the table: its right is checked, and its outcome logged if it changes something.

        ``request``: its fields are logged, too. Raises RpcError.
        """
        self.check(table, channel)
        outcome = "OK"
        try:
            yield
        except BaseException as error:
            outcome = outcome_name(error)
            raise
        finally:
            if self.method.is_logged:
                self.log(outcome, table, channel, details=details_of(request, self.method) if request is not None else {})

    def usage(self) -> Usage:
        """How much its principal may use, by the access file as it is now."""
        return self.control.usage_of(self.identity)

    def while_allowed(self, table: str, channel: str, end: Callable[[errors_pb2.Error], None]) -> AbstractContextManager[None]:
        """Inside the block ``end`` is called, once, when the right has ended (AccessControl.ended_without_right)."""
        assert self.method.right is not None  # noqa: S101 - streams of services are not looked at again

        def ended(error: errors_pb2.Error) -> None:
            self.log(_outcome(error), table, channel, refused=True)
            end(error)

        return self.control.ended_without_right(self.identity, self.method.right, table, channel, ended)

    def log(
        self,
        outcome: str,
        table: str | None = None,
        channel: str | None = None,
        *,
        refused: bool = False,
        details: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """One line; ``outcome`` is "OK" or a code without its prefix."""
        table, channel = (table or "")[:_LONGEST], (channel or "")[:_LONGEST]
        self.audit.write(AuditEntry(self.path, outcome, self.identity, self.peer, table, channel, refused, details))


def admitted_call(
    control: AccessControl,
    audit: AuditLog,
    path: str,
    metadata: Metadata,
    credentials: Credentials,
    peer: str,
    identity: Identity | None = None,
) -> Call:
    """The call of "/package.Service/Method", once its identity is known; no request is needed. ``identity``: where the connection
    has proved it.

    Raises RpcError (CODE_UNAUTHENTICATED; CODE_PERMISSION_DENIED for a method whose contract says nothing), and logs it.
    """
    method = method_access(path)
    if method is None:
        raise refused_call(audit, path, peer, refusal_error(_UNDECLARED))
    found = identity or control.authenticate(credentials, method.right)
    if isinstance(found, Unauthenticated):
        raise refused_call(audit, path, peer, refusal_error(found))
    return Call(control, audit, path, method, found, peer, metadata)


def refused_call(audit: AuditLog, path: str, peer: str, error: errors_pb2.Error) -> RpcError:
    """Of a caller who is not known, with its line in the audit log."""
    audit.write(AuditEntry(path, _outcome(error), peer=peer, refused=True))
    return RpcError(error)


def details_of(request: Message, method: MethodAccess) -> Mapping[str, object]:
    """What the request asks for besides its table: no bytes, texts cut."""
    found: dict[str, object] = {}
    for described, value in request.ListFields():
        if described.type is FieldDescriptor.TYPE_BYTES or (described.name,) == method.table:
            continue
        found[described.name] = value if isinstance(value, bool | int | float) else str(value)[:_LONGEST]
    return found


def outcome_name(error: BaseException) -> str:
    """How the audit log names the end of a call that raises this."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    match error:
        case RpcError():
            return _outcome(error.error)
        case asyncio.CancelledError() | grpc.aio.BaseError():
            return "CANCELLED"
        case _:
            return "INTERNAL"


def _outcome(error: errors_pb2.Error) -> str:
    return errors_pb2.Code.Name(error.code).removeprefix("CODE_")
