"""Reads a client's schema within limits: a schema that nests too deeply crashes pyarrow."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.errors import rpc_error

MAX_SCHEMA_BYTES: Final = 256 << 10
MAX_COLUMNS: Final = 2_000
"""Nested fields included: each costs as much as a column."""
MAX_NESTING: Final = 16


def read_schema(data: bytes) -> pa.Schema:
    """Returns the schema of an encapsulated Arrow IPC schema message. Raises RpcError: TOO_LARGE, SCHEMA."""
    if len(data) > MAX_SCHEMA_BYTES:
        raise _too_large(f"the schema has {len(data)} bytes, {MAX_SCHEMA_BYTES} are allowed")
    try:
        # Arrow itself refuses more than 64 levels; a type of fewer levels is safe to walk.
        schema = pa.ipc.read_schema(pa.py_buffer(data))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise rpc_error(
            errors_pb2.CODE_SCHEMA, "the schema is no Arrow IPC schema message", "Send the bytes of `pyarrow.Schema.serialize`."
        ) from error
    for fields, depth in enumerate(_depths(schema), 1):
        if depth > MAX_NESTING:
            raise _too_large(f"the schema nests deeper than {MAX_NESTING} levels")
        if fields > MAX_COLUMNS:
            raise _too_large(f"the schema has more than {MAX_COLUMNS} columns")
    return schema


def _depths(schema: pa.Schema) -> Iterator[int]:
    """Yields the depth of each field, 1 for a column. Without recursion, so that the limit ends the walk and not the stack."""
    waiting = [(field.type, 1) for field in schema]
    while waiting:
        kind, depth = waiting.pop()
        yield depth
        waiting += [(kind.field(index).type, depth + 1) for index in range(kind.num_fields)]


def _too_large(message: str) -> Exception:
    return rpc_error(errors_pb2.CODE_TOO_LARGE, message, "Use fewer or flatter columns.")
