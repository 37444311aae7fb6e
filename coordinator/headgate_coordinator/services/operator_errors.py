"""The table library's errors as operators get them."""

from collections.abc import Awaitable
from typing import TypeVar

import grpc
import structlog
from grpc.aio import ServicerContext

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.errors import RpcError, from_tables, rpc_error
from headgate_tables.errors import FixCall, ForeignWriterError, OutcomeUnknownError, TablesError, UnsupportedTableError

_log = structlog.get_logger()
_T = TypeVar("_T")
_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


async def answered(answer: Awaitable[_T]) -> _T:
    """Returns the answer. Raises RpcError for the library's errors."""
    try:
        return await answer
    except TablesError as error:
        raise refused(error) from error


async def answered_once(context: ServicerContext[_Request, _Answer], answer: Awaitable[_T]) -> _T:
    """As ``answered``, for a request that must not be sent twice. When nobody knows whether it was done, the call ends as if it
    had broken off, without an error of Headgate's: each of those says that nothing was done, or that it may be sent again.
    """
    try:
        return await answer
    except OutcomeUnknownError as error:
        refused(error)
        await context.abort(grpc.StatusCode.UNKNOWN, f"whether it was done is not known: {error.message}")
    except TablesError as error:
        raise refused(error) from error


def refused(error: TablesError) -> RpcError:
    """The error with all that an operator needs; logs it, unless the request is at fault."""
    if not isinstance(error, FixCall):
        _log.warning("an operator's request failed", error=str(error), kind=type(error).__name__)
    answer = from_tables(error)
    if isinstance(error, ForeignWriterError | UnsupportedTableError):
        # The error for clients sends them to the operators; operators need to know what is wrong.
        answer.message, answer.fix = error.message, error.fix
    return RpcError(answer)


def says_nothing(fields: str) -> RpcError:
    """The error of a request without any of these fields."""
    return rpc_error(errors_pb2.CODE_INVALID_ARGUMENT, "the request does not say what to do", f"Set one of {fields}.")
