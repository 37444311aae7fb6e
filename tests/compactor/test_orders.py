"""An operation as an order carries it: whole, or refused."""

from dataclasses import replace

import pytest

from headgate_compactor.orders import read_operation
from headgate_coordinator.streams.messages import operation_message
from headgate_proto.cluster.v1.compaction_pb2 import CompactionOperation
from headgate_runtime.errors import UnknownMessageError
from headgate_tables.face.operation import Operation, PinnedFile

WHOLE = Operation("p/q", "f-0", PinnedFile("base", 7), (PinnedFile("log 1", 0), PinnedFile("log 2", 1 << 40)), "out")


def test_every_field_of_an_operation_comes_through() -> None:
    for sent in (WHOLE, Operation("", "f-0", None, (), "out"), replace(WHOLE, merged_log=".log 3")):
        assert read_operation(CompactionOperation.FromString(operation_message(sent).SerializeToString())) == sent


@pytest.mark.parametrize("name", ["partition", "file_id", "output"])
def test_an_operation_without_a_field_is_refused(name: str) -> None:
    message = operation_message(WHOLE)
    message.ClearField(name)  # type: ignore[arg-type]
    with pytest.raises(UnknownMessageError, match=f"an operation of a compaction without `{name}` is unknown here"):
        read_operation(message)


def test_an_operation_with_a_field_that_is_not_known_is_refused() -> None:
    newer = operation_message(WHOLE).SerializeToString() + b"\xf8\x01\x01"  # field 31, a varint
    with pytest.raises(UnknownMessageError, match="an operation of a compaction with the field 31"):
        read_operation(CompactionOperation.FromString(newer))
    message = operation_message(WHOLE)
    message.logs[1].ClearField("size")
    with pytest.raises(UnknownMessageError, match="a pinned file without `size`"):
        read_operation(message)
