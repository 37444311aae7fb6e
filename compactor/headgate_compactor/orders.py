"""Reads an order to compact into types of the table library."""

from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_proto.cluster.v1.table_pb2 import TableDefinition
from headgate_runtime.definitions import definition_fields
from headgate_runtime.messages import check_complete
from headgate_tables.face.definition import Definition
from headgate_tables.face.operation import Operation, PinnedFile
from headgate_tables.opening import define, read_schema


def read_definition(message: TableDefinition) -> Definition:
    """Returns a table's definition. Raises UnknownMessageError, CorruptFileError."""
    fields = definition_fields(message)
    return define(schema=read_schema(message.schema), **fields)


def read_operation(message: wire.CompactionOperation) -> Operation:
    """Returns an operation. Raises UnknownMessageError for a missing or unknown field."""
    check_complete(message, "an operation of a compaction", may_lack=("base", "merged_log"))
    return Operation(
        message.partition,
        message.file_id,
        _pinned(message.base) if message.HasField("base") else None,
        tuple(map(_pinned, message.logs)),
        message.output,
        message.merged_log,
    )


def _pinned(message: wire.PinnedFile) -> PinnedFile:
    check_complete(message, "a pinned file")
    return PinnedFile(message.name, message.size)
