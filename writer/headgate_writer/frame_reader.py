"""Reads the frames of one table, and refuses all that ``frames.encode_rows`` does not write for it.

Arrow trusts what it reads: offsets, lengths, the sizes of compressed buffers. A sender has the identity of a writer, and may be
false or broken all the same. Nothing is copied, and each check runs once for all rows of a column (rule EX6).
"""

from __future__ import annotations

from typing import Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_proto.cluster.v1 import exchange_pb2 as wire
from headgate_runtime.errors import RpcError
from headgate_runtime.limits import MAX_MESSAGE_BYTES
from headgate_runtime.schema_limits import SchemaLimits, read_declared
from headgate_tables.arrow import Array, Field
from headgate_tables.face.definition import Definition
from headgate_writer.checksums import frame_checksum
from headgate_writer.frames import OURS
from headgate_writer.ipc_limits import Limits, check_batch, check_schema
from headgate_writer.routing import RoutedRows
from headgate_writer.windows import ExchangeError

_END: Final = b"\xff\xff\xff\xff\0\0\0\0"
"""Of an IPC stream."""

_BYTES: Final = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}

_UNBOUNDED: Final = SchemaLimits(1 << 30, 1 << 30, 1 << 10, 1 << 30, 1 << 30, 1 << 30)
"""For the table's own schema, which its coordinator has taken."""


class FrameReader:
    """Of one table. CPU work: for many rows call ``decode`` off the loop."""

    def __init__(self, definition: Definition) -> None:
        self._columns = definition.schema
        self._schema = pa.schema([*definition.schema, *OURS])
        self._bytes = pa.schema([_as_bytes(each) for each in self._schema])
        self._head = self._schema.serialize().to_pybytes()
        self._definition = definition
        schema = SchemaLimits(columns=len(read_declared(self._head, _UNBOUNDED).fields))
        most = MAX_MESSAGE_BYTES
        # No byte may be in two buffers: what is counted in memory is what was received.
        self._limits = Limits(schema, most, most, ratio=1, rows=most, values=8 * most, compressed=False)

    def decode(self, frame: wire.Rows) -> RoutedRows:
        """Returns the rows of a frame, with its checksum; they keep the received bytes alive, and nothing else.

        Raises ExchangeError for a frame that no writer sends for this table.
        """
        batch = frame.batch  # once: each access copies it
        try:
            rows = self._read(batch)
        except RpcError as refused:
            raise _unreadable(refused.error.message) from refused
        except (pa.ArrowException, OSError) as damaged:
            raise _unreadable(str(damaged).partition("\n")[0]) from damaged
        keys, flags, group = rows.columns[-len(OURS) :]
        deletes = cast("pa.BooleanArray", flags)
        groups = [(each.partition, each.bucket) for each in frame.groups]
        numbers = self._group_numbers(group, groups)
        if keys.null_count or deletes.null_count:
            raise _unreadable("a row has no key, or does not say whether it is a delete")
        table = pa.Table.from_arrays(rows.columns[: -len(OURS)], schema=self._columns)
        return RoutedRows.of(table, keys, deletes, numbers, groups, checksum=frame_checksum(groups, batch))

    def _read(self, stream: bytes) -> pa.RecordBatch:
        """The one batch of an IPC stream, without a copy. Raises RpcError, ExchangeError, pa.ArrowException."""
        begin = self._begin_of_batch(stream)
        if not stream.endswith(_END):
            raise _unreadable("its end is missing")
        message = memoryview(stream)[begin : -len(_END)]
        check_batch(message, self._limits)
        content = pa.py_buffer(message)
        pa.ipc.read_record_batch(content, self._bytes).validate(full=True)
        return pa.ipc.read_record_batch(content, self._schema)

    def _begin_of_batch(self, stream: bytes) -> int:
        """Where the schema's message ends. Another version of Arrow may write the same schema in other bytes."""
        if stream.startswith(self._head):
            return len(self._head)
        size = int.from_bytes(stream[4:8], "little", signed=True)
        begin = 8 + max(size, 0)
        check_schema(stream[:begin], self._limits.schema)
        schema = pa.ipc.read_schema(pa.py_buffer(stream[:begin]))
        if schema.names != self._schema.names or schema.types != self._schema.types:
            raise _unreadable("its columns are not the table's")
        return begin

    def _group_numbers(self, group: Array, groups: list[tuple[str, int]]) -> npt.NDArray[np.int32]:
        if group.null_count or not len(group):
            raise _unreadable("it has no rows, or one that belongs to no bucket")
        numbers: npt.NDArray[np.int32] = group.to_numpy()
        if int(numbers.min()) < 0 or int(numbers.max()) >= len(groups):
            raise _unreadable(f"a row belongs to none of its {len(groups)} buckets")
        if not np.bincount(numbers, minlength=len(groups)).all() or any(
            bucket >= self._definition.buckets_in(partition) for partition, bucket in groups
        ):
            raise _unreadable("it names a bucket without rows, or one that the table does not have")
        return numbers


def _as_bytes(field: Field) -> Field:
    """A column of text as one of bytes: text that is not UTF-8 is as safe to handle here, and looking for it would cost eight
    times as much as all other checks of a batch.
    """
    return field.with_type(_BYTES.get(field.type, field.type))


def _unreadable(why: str) -> ExchangeError:
    return ExchangeError(f"a frame cannot be read: {why}")
