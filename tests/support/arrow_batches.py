"""Arrow messages as clients send them, and rows as the ingest side hands them on."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from headgate_proto.api.v1 import ingest_pb2
from headgate_tables.hudi.definition import Definition
from headgate_writer.admission import Admission, Admitted
from headgate_writer.routing import RoutedRows, route

Compression: TypeAlias = Literal["lz4", "zstd"] | None


def schema_message(schema: pa.Schema) -> bytes:
    """Encapsulated."""
    return schema.serialize().to_pybytes()


def rows_message(rows: pa.RecordBatch, compression: Compression = None) -> bytes:
    """Encapsulated."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(rows)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    message = [reader.read_next_message() for _ in range(2)][1]
    return message.serialize().to_pybytes()


def batch(
    rows: pa.RecordBatch,
    compression: Compression = None,
    operation: Any = ingest_pb2.OPERATION_UPSERT,
    operation_column: str = "",
) -> ingest_pb2.Batch:
    """With its schema."""
    return ingest_pb2.Batch(
        schema=schema_message(rows.schema),
        rows=rows_message(rows, compression),
        operation=operation,
        operation_column=operation_column,
    )


def admit(message: ingest_pb2.Batch, admission: Admission, schema: pa.Schema | None = None) -> Admitted:
    """As a stream does it. ``schema``: of the batches before, for one that brings none. Raises RpcError."""
    return admission.decode(message, message.rows, admission.schema(message.schema) if message.schema else schema)


def upserts(rows: pa.Table) -> Admitted:
    return Admitted(rows.combine_chunks(), None, rows.nbytes)


def mixed(rows: pa.Table, deletes: Sequence[bool]) -> Admitted:
    return Admitted(rows.combine_chunks(), pa.array(deletes, pa.bool_()), rows.nbytes)


def routed(rows: Sequence[dict[str, Any]], definition: Definition, deletes: Sequence[bool] | None = None) -> RoutedRows:
    """Rows of the table, in order."""
    table = pa.Table.from_pylist(list(rows), definition.schema)
    flags = pa.array(np.zeros(len(rows), np.bool_) if deletes is None else np.array(deletes, np.bool_))
    return route([Admitted(table.combine_chunks(), flags, table.nbytes)], definition)
