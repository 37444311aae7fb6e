"""Errors on the wire: their actions, gRPC statuses and trailing metadata, and the codes of the table library's errors."""

from typing import Final, NamedTuple, Protocol, TypeAlias

import grpc

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.api.v1.errors_pb2 import Action, Code, Error

CodeValue: TypeAlias = "Code.ValueType"
ActionValue: TypeAlias = "Action.ValueType"

METADATA_KEY: Final = "headgate-error-bin"
"""Trailing metadata of a failed call: the serialized ``headgate.api.v1.Error``."""

DEFAULT_RETRY_MS: Final = 200
"""The wait of an ACTION_RETRY for which no time was set: a table changes hands in seconds, an overload passes sooner."""

_NAME_BYTES: Final = 60
_TEXT_BYTES: Final = 1_000
"""Of a message and of a fix. They travel as status and inside the error, gRPC refuses more than 8 KiB of metadata, and a name in
them may be as long as the caller's request was."""


class RpcError(Exception):
    """An error for the client, raised in servicers. The server turns it into a status and trailing metadata; streams send
    ``error`` in an answer.
    """

    def __init__(self, error: Error) -> None:
        super().__init__(f"{Code.Name(error.code)}: {error.message}. {error.fix}")
        self.error = error


class UnknownMessageError(Exception):
    """A stream brought a message of an unknown kind. The stream ends: to ignore the message could lose rows.

    ``what``: the kind of message, with its article.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is unknown here: bring all services of the cluster to the same version")


class VersionSkewError(Exception):
    """The server's version and this service's do not go together; the message says which of them to upgrade."""


class TablesErrorLike(Protocol):
    """Has the fields of ``headgate_tables.errors.TablesError``, which runtime does not import."""

    @property
    def message(self) -> str:
        """What is wrong."""

    @property
    def fix(self) -> str:
        """The next step."""


def action_of(code: CodeValue) -> ActionValue:
    """Returns what the caller can do. Codes are numbered by action (see ``errors.proto``)."""
    if 1 <= code < 10:
        return errors_pb2.ACTION_RETRY
    if 10 <= code < 20:
        return errors_pb2.ACTION_RESUME
    if 20 <= code < 40:
        return errors_pb2.ACTION_FIX_CALL
    return errors_pb2.ACTION_GIVE_UP


def cut(text: str, most: int = _NAME_BYTES) -> str:
    """``text``, or what fits of it into ``most`` bytes of UTF-8, with an ellipsis behind it. For names that callers make."""
    encoded = text.encode(errors="replace")
    return text if len(encoded) <= most else encoded[:most].decode(errors="ignore") + "…"


def wire_error(code: CodeValue, message: str, fix: str, *, address: str = "", retry_after_ms: int = 0) -> Error:
    """Makes an error. Clients see ``message`` and ``fix``, which are cut: no paths, names of stores' buckets, or other clients'
    rows in them.
    """
    action = action_of(code)
    if action == errors_pb2.ACTION_RETRY:
        retry_after_ms = retry_after_ms or DEFAULT_RETRY_MS
    return Error(
        code=code,
        action=action,
        message=cut(message, _TEXT_BYTES),
        fix=cut(fix, _TEXT_BYTES),
        address=address,
        retry_after_ms=retry_after_ms,
    )


def rpc_error(code: CodeValue, message: str, fix: str, *, address: str = "", retry_after_ms: int = 0) -> RpcError:
    """Makes a ``wire_error`` as an exception."""
    return RpcError(wire_error(code, message, fix, address=address, retry_after_ms=retry_after_ms))


class _ForClients(NamedTuple):
    """The error for clients. ``message`` and ``fix`` replace those of an error that may name paths; None keeps them."""

    code: CodeValue
    message: str | None = None
    fix: str | None = None


_STORE_SILENT = _ForClients(errors_pb2.CODE_UNAVAILABLE, "the table's storage does not answer", "Send the same again later.")
_REOPEN = _ForClients(errors_pb2.CODE_UNAVAILABLE, "the table is changing hands", "Send the same again shortly.")
_FOREIGN = _ForClients(
    errors_pb2.CODE_TABLE_QUARANTINED,
    "another program wrote to the table, or it is of a kind that is not written here",
    "Ask the operators of the cluster to look at the table.",
)
_BROKEN = _ForClients(
    errors_pb2.CODE_INTERNAL,
    "the table's storage refuses the service or is damaged",
    "Ask the operators of the cluster to look at the coordinator's log.",
)

_BY_CLASS: Final[dict[str, _ForClients]] = {
    "RetryLater": _STORE_SILENT,
    "StoreDeniedError": _ForClients(
        errors_pb2.CODE_UNAVAILABLE,
        "the table's storage denies the service access",
        "Send the same again later; `headgate status` shows operators the storage's error.",
    ),
    "StoreFullError": _ForClients(
        errors_pb2.CODE_UNAVAILABLE, "the table's storage is full", "Send the same again when there is space."
    ),
    "ReopenTable": _REOPEN,
    "TableGoneError": _ForClients(
        errors_pb2.CODE_UNAVAILABLE,
        "the table's folder is not at its place",
        "Ask the operators of the cluster: `headgate status` names the folder and what to do.",
    ),
    "SchemaError": _ForClients(errors_pb2.CODE_SCHEMA),
    "NullKeyError": _ForClients(errors_pb2.CODE_NULL_KEY),
    "NullOrderingError": _ForClients(errors_pb2.CODE_NULL_ORDERING),
    "PartitionValueError": _ForClients(errors_pb2.CODE_PARTITION_VALUE),
    "FixCall": _ForClients(errors_pb2.CODE_INVALID_ARGUMENT),
    "OptionError": _ForClients(errors_pb2.CODE_INVALID_ARGUMENT),
    "TooLargeError": _ForClients(errors_pb2.CODE_TOO_LARGE),
    "TransactionError": _BROKEN,
    "NotATableError": _ForClients(errors_pb2.CODE_TABLE_NOT_FOUND, "no table of this name", "Create it, or correct the name."),
    "OtherDefinitionError": _ForClients(errors_pb2.CODE_TABLE_EXISTS),
    "TableExistsError": _ForClients(
        errors_pb2.CODE_TABLE_EXISTS, "there is a table of this name", "Pass exist_ok=True, or choose another name."
    ),
    "TableInGraceError": _ForClients(errors_pb2.CODE_TABLE_DROPPED),
    "TableDroppedError": _ForClients(
        errors_pb2.CODE_TABLE_DROPPED,
        fix="Create a new table of this name once its files are deleted; it begins without rows and offsets.",
    ),
    "TableRenamedError": _ForClients(errors_pb2.CODE_TABLE_RENAMED),
    "UnsupportedTableError": _FOREIGN,
    "TableOwnedError": _FOREIGN,
    "ForeignWriterError": _FOREIGN,
    "OperatorNeeded": _BROKEN,
}


def from_tables(error: TablesErrorLike) -> Error:
    """Returns the error for clients for one of ``headgate_tables.errors``, by the name of its nearest known class.

    An error about the client's own rows and arguments keeps its text. An error about storage gets another, because its own names
    paths; the caller should log it. An unknown class becomes CODE_INTERNAL.
    """
    for kind in type(error).__mro__:
        if known := _BY_CLASS.get(kind.__name__):
            return wire_error(known.code, known.message or error.message, known.fix or error.fix)
    return wire_error(errors_pb2.CODE_INTERNAL, _BROKEN.message or "", _BROKEN.fix or "")


_STATUS: Final[dict[CodeValue, grpc.StatusCode]] = {
    errors_pb2.CODE_OVERLOADED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors_pb2.CODE_QUOTA: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors_pb2.CODE_TABLE_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    errors_pb2.CODE_TABLE_EXISTS: grpc.StatusCode.ALREADY_EXISTS,
    errors_pb2.CODE_TABLE_DROPPED: grpc.StatusCode.NOT_FOUND,
    errors_pb2.CODE_TABLE_RENAMED: grpc.StatusCode.NOT_FOUND,
    errors_pb2.CODE_OFFSET_OVERLAP: grpc.StatusCode.FAILED_PRECONDITION,
    errors_pb2.CODE_OFFSET_GAP: grpc.StatusCode.FAILED_PRECONDITION,
    errors_pb2.CODE_AFTER_FAILED_BATCH: grpc.StatusCode.FAILED_PRECONDITION,
    errors_pb2.CODE_SLICE_SET_ASIDE: grpc.StatusCode.FAILED_PRECONDITION,
    errors_pb2.CODE_CHANNEL_TAKEN_OVER: grpc.StatusCode.FAILED_PRECONDITION,
    errors_pb2.CODE_CHANNEL_FORBIDDEN: grpc.StatusCode.PERMISSION_DENIED,
    errors_pb2.CODE_UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    errors_pb2.CODE_PERMISSION_DENIED: grpc.StatusCode.PERMISSION_DENIED,
    errors_pb2.CODE_TABLE_QUARANTINED: grpc.StatusCode.FAILED_PRECONDITION,
    errors_pb2.CODE_INTERNAL: grpc.StatusCode.INTERNAL,
}

_STATUS_OF_ACTION: Final[dict[ActionValue, grpc.StatusCode]] = {
    errors_pb2.ACTION_RETRY: grpc.StatusCode.UNAVAILABLE,
    errors_pb2.ACTION_RESUME: grpc.StatusCode.ABORTED,
    errors_pb2.ACTION_FIX_CALL: grpc.StatusCode.INVALID_ARGUMENT,
    errors_pb2.ACTION_GIVE_UP: grpc.StatusCode.FAILED_PRECONDITION,
}


def status_of(error: Error) -> grpc.StatusCode:
    """Returns the gRPC status, for programs that do not know our codes."""
    return _STATUS.get(error.code) or _STATUS_OF_ACTION[action_of(error.code)]


def from_call(failed: grpc.aio.AioRpcError) -> Error:
    """Returns the error of a failed call: the server's own, else one that the call failed on the way."""
    metadata = failed.trailing_metadata()
    carried = metadata.get(METADATA_KEY) if metadata is not None else None
    if isinstance(carried, bytes):
        return Error.FromString(carried)
    code = errors_pb2.CODE_UNAUTHENTICATED if failed.code() is grpc.StatusCode.UNAUTHENTICATED else errors_pb2.CODE_UNAVAILABLE
    return wire_error(code, f"the call failed: {failed.code().name}", "Try again, or another address.")


def only_rpc_error(error: BaseException) -> RpcError | None:
    """The RpcError that ended a task group; None if anything else was in it."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, RpcError) else None
