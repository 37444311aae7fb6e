"""Which right a method wants and where its request names the table, as the contracts say (``access.proto``)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message

from headgate_proto.api.v1 import access_pb2
from headgate_runtime.access.rights import Right

HEALTH: Final = "/grpc.health."
"""Methods that everybody may call."""

_RIGHTS: Final = {
    access_pb2.RIGHT_READ: Right.READ,
    access_pb2.RIGHT_WRITE: Right.WRITE,
    access_pb2.RIGHT_CREATE: Right.CREATE,
    access_pb2.RIGHT_OPERATE: Right.OPERATE,
    access_pb2.RIGHT_ADMIN: Right.ADMIN,
}


@dataclass(frozen=True, slots=True)
class MethodAccess:
    """``right`` None: for services of the cluster alone. ``table``, ``channel``: paths of fields, empty without one.

    ``table_optional``: a request that names no table is about all that the caller may read. ``streams``: tables are named in the
    stream of requests, so the servicer has to ask, once it has read the first.
    """

    name: str
    right: Right | None
    table: Sequence[str]
    table_optional: bool
    channel: Sequence[str]
    streams: bool

    @property
    def is_logged(self) -> bool:
        """Whether the audit log has also the calls that are allowed: those that change something, of programs and people."""
        return self.right not in (None, Right.READ) and bool(self.table)

    def table_of(self, request: Message) -> str | None:
        """The table that the request names; None where it is about no one table. An empty name is a name where one is needed."""
        if not self.table:
            return None
        return _text_at(request, self.table) or (None if self.table_optional else "")


@cache
def method_access(path: str) -> MethodAccess | None:
    """Of "/package.Service/Method"; None for a method that nobody may call, as its contract says nothing."""
    service, _, name = path.removeprefix("/").partition("/")
    try:
        method = Default().FindServiceByName(service).methods_by_name[name]
    except KeyError:
        return None
    return declared_access(method)


def declared_access(method: MethodDescriptor) -> MethodAccess | None:
    """What the method's contract declares; None if nothing."""
    options = method.GetOptions()
    declared = options.Extensions[access_pb2.access]
    if declared.right not in _RIGHTS and declared.right != access_pb2.RIGHT_SERVICE:
        return None
    return MethodAccess(
        method.name,
        _RIGHTS.get(declared.right),
        _path(declared.table),
        declared.table_optional,
        _path(declared.channel),
        method.client_streaming,
    )


def _path(fields: str) -> Sequence[str]:
    return tuple(fields.split(".")) if fields else ()


def _text_at(message: Message, path: Sequence[str]) -> str:
    for field in path[:-1]:
        message = getattr(message, field)
    return str(getattr(message, path[-1]))
