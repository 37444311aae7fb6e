"""A client's schema, read only within limits: Arrow believes what a message declares."""

import pyarrow as pa

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.errors import rpc_error
from headgate_runtime.flatbuffer import DamagedError
from headgate_runtime.schema_limits import SchemaLimits, read_declared

_LIMITS = SchemaLimits()


def read_schema(message: bytes) -> pa.Schema:
    """The schema of an Arrow IPC encapsulated schema message. CPU work: call it off the loop.

    Raises RpcError: TOO_LARGE, SCHEMA.
    """
    try:
        read_declared(message, _LIMITS)
        return pa.ipc.read_schema(pa.py_buffer(message))
    except (DamagedError, pa.ArrowException, OSError, ValueError) as error:
        raise rpc_error(
            errors_pb2.CODE_SCHEMA, "the schema is no Arrow IPC schema message", "Send the bytes of `pyarrow.Schema.serialize`."
        ) from error
