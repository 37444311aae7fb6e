"""Decodes a client's bytes into rows, or refuses them with a typed error. Only this file sees the bytes of clients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from headgate_runtime.arrow_messages import too_large
from headgate_runtime.errors import cut
from headgate_tables.arrow import Array, Scalar, pc
from headgate_writer.ipc_limits import Limits, check_batch, check_schema, corrupt, refuse
from headgate_writer.sizes import value_bytes

_UPSERT, _DELETE = 1, 2
_SCHEMAS, _SCHEMA_BYTES = 64, 16 << 10
"""So many schemas are kept, the last ones that came, if their messages are no larger. To check one takes 30 us a column."""
_MAY_BE_TEXT: Final = "int8 with 1 = upsert and 2 = delete, or string with 'upsert' and 'delete'"


@dataclass(frozen=True, slots=True, eq=False)
class Admitted:
    """One batch: valid Arrow data, not yet checked against its table.

    ``rows``: one chunk per column, without the operation column. ``deletes``: bool[n], None when all are upserts.
    ``nbytes``: Arrow bytes that its buffers take, with the nulls that the rows get (filling.py).
    """

    rows: pa.Table
    deletes: pa.BooleanArray | None
    nbytes: int


class Admission:
    """Decodes batches. Every refusal is an RpcError, and leaves nothing behind. CPU work: call it off the event loop."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kept = lru_cache(_SCHEMAS)(self._schema)

    def schema(self, message: bytes) -> pa.Schema:
        """Returns the schema of an encapsulated schema message. Channels of one table send the same one, byte for byte."""
        return self._kept(message) if len(message) <= _SCHEMA_BYTES else self._schema(message)

    def _schema(self, message: bytes) -> pa.Schema:
        check_schema(message, self._limits.schema)
        try:
            return pa.ipc.read_schema(pa.py_buffer(message))
        except (pa.ArrowException, OSError) as error:
            corrupt(f"the schema cannot be read ({_first_line(error)})")

    def decode(self, batch: ingest_pb2.Batch, rows: bytes, schema: pa.Schema | None) -> Admitted:
        """Decodes one batch. ``rows``: the batch's, of which protobuf makes a copy for everybody who asks. ``schema``: of the
        stream's last schema message, this batch's own included; None before any.
        """
        if schema is None:
            refuse(errors_pb2.CODE_SCHEMA, "the stream's first batch has no schema", "Send the schema with the first batch.")
        read, nbytes = self._read(rows, schema)
        operations = None
        if batch.operation == ingest_pb2.OPERATION_MIXED:
            read, operations = _without_column(read, batch.operation_column)
        table = pa.Table.from_batches([read])
        return Admitted(table, _deletes(batch.operation, operations, read.num_rows), nbytes)

    def _read(self, message: bytes, schema: pa.Schema) -> tuple[pa.RecordBatch, int]:
        """The rows, and their bytes: as declared, which is all that they take. To ask Arrow costs more than to read them."""
        declared = check_batch(message, self._limits)
        try:
            rows = pa.ipc.read_record_batch(pa.py_buffer(message), schema)
            # Arrow's kernels trust offsets and lengths; wrong ones would read other memory (Arrow's security model).
            rows.validate(full=True)
        except (pa.ArrowException, OSError) as error:
            corrupt(f"the rows are not valid Arrow data for their schema ({_first_line(error)})")
        if declared > self._limits.cell_bytes:
            self._check_cells(rows)
        return rows, declared

    def _check_cells(self, rows: pa.RecordBatch) -> None:
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            size = value_bytes(column)
            largest = size if isinstance(size, int) else int(size.max(initial=0))
            if largest > self._limits.cell_bytes:
                what = f"bytes of one value in column {cut(name)!r}"
                fix = "Keep such values in files, and send the files' names."
                raise too_large(what, largest, self._limits.cell_bytes, fix)


def _without_column(rows: pa.RecordBatch, name: str) -> tuple[pa.RecordBatch, Array]:
    found = rows.schema.get_all_field_indices(name)
    if len(found) != 1:
        what = f"the batch has {'no' if not found else 'more than one'} operation column {cut(name)!r}"
        refuse(errors_pb2.CODE_SCHEMA, what, "Name the column that marks each row of the batch as upsert or delete.")
    return rows.remove_column(found[0]), rows.column(found[0])


def _deletes(operation: int, column: Array | None, rows: int) -> pa.BooleanArray | None:
    if operation == ingest_pb2.OPERATION_UPSERT:
        return None
    if operation == ingest_pb2.OPERATION_DELETE:
        return pa.array(np.ones(rows, np.bool_))
    if column is None:
        refuse(errors_pb2.CODE_INVALID_ARGUMENT, f"operation {operation} is unknown", "Send UPSERT, DELETE or MIXED.")
    upsert, delete = _meanings(column.type)
    deletes: pa.BooleanArray = pc.equal(column, delete)
    known: pa.BooleanArray = pc.or_(deletes, pc.equal(column, upsert)).fill_null(False)
    if known.true_count < rows:
        first = pc.index(known, False).as_py()
        what = f"the operation column says neither upsert nor delete in {rows - known.true_count} rows, first in row {first}"
        refuse(errors_pb2.CODE_INVALID_ARGUMENT, what, f"Fill it in every row: {_MAY_BE_TEXT}.")
    return deletes if deletes.true_count else None


def _meanings(kind: pa.DataType) -> tuple[Scalar, Scalar]:
    if pat.is_int8(kind):
        return pa.scalar(_UPSERT, kind), pa.scalar(_DELETE, kind)
    if not (pat.is_string(kind) or pat.is_large_string(kind)):
        refuse(errors_pb2.CODE_SCHEMA, f"the operation column is {kind}", f"Make it {_MAY_BE_TEXT}.")
    return pa.scalar("upsert", kind), pa.scalar("delete", kind)


def _first_line(error: BaseException) -> str:
    """Returns the error's message without the stack of C++ files that Arrow appends."""
    return cut(str(error).partition("\n")[0], 200)
