"""Every integer of the contracts declares a range, and a message is held to it at the door."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from headgate_proto.api.v1 import ingest_pb2, ranges_pb2
from headgate_proto.cluster.v1 import coordination_pb2, exchange_pb2, table_pb2
from headgate_proto.ranges import INTEGERS, OutOfRangeError, check_ranges, declared_range
from support.contracts import files

MOST = {FieldDescriptor.CPPTYPE_UINT32: 2**32 - 1, FieldDescriptor.CPPTYPE_UINT64: 2**64 - 1}


def kinds() -> Iterator[Descriptor]:
    """Of all contracts, with those inside of others; entries of maps are told by the field of the map. Values of options, which
    contracts say and no message carries, are left out.
    """
    options = {option.message_type for file in files() for option in file.extensions_by_name.values()}
    waiting = [kind for file in files() for kind in file.message_types_by_name.values() if kind not in options]
    while waiting:
        kind = waiting.pop()
        waiting += [inner for inner in kind.nested_types if not inner.GetOptions().map_entry]
        yield kind


def integers() -> Iterator[tuple[FieldDescriptor, FieldDescriptor, bool]]:
    """Each with the field that declares its range, and whether it is the key of a map."""
    for field in itertools.chain.from_iterable(kind.fields for kind in kinds()):
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            for name in ("key", "value"):
                if entry.fields_by_name[name].cpp_type in INTEGERS:
                    yield entry.fields_by_name[name], field, name == "key"
        elif field.cpp_type in INTEGERS:
            yield field, field, False


ALL = list(integers())


@pytest.mark.parametrize(("integer", "declares", "of_keys"), ALL, ids=lambda each: getattr(each, "full_name", str(each)))
def test_every_integer_declares_a_range_that_it_can_have(
    integer: FieldDescriptor, declares: FieldDescriptor, of_keys: bool
) -> None:
    declared = declared_range(declares, of_keys=of_keys)
    assert declared is not None, f"{declares.full_name} has no range: add (headgate.api.v1.range)"
    assert declared.min <= declared.max <= MOST[integer.cpp_type]
    assert declared.max > 0


def test_the_contracts_are_all_looked_at() -> None:
    assert len(ALL) > 100
    assert ranges_pb2.Range.DESCRIPTOR.file.package == "headgate.api.v1"


def refused(message: Any) -> str:
    try:
        check_ranges(message)
    except OutOfRangeError as wrong:
        return str(wrong)
    return ""


BIG = 2**53
OFFSET = 2**63 - 1


@pytest.mark.parametrize(
    ("fits", "too_large", "says"),
    [
        pytest.param(
            ingest_pb2.AppendRequest(batch=ingest_pb2.Batch(after=OFFSET, offset=OFFSET)),
            ingest_pb2.AppendRequest(batch=ingest_pb2.Batch(offset=OFFSET + 1)),
            f"`Batch.offset` is {OFFSET + 1}, and has to lie between 0 and {OFFSET}",
            id="in a message of a oneof",
        ),
        pytest.param(
            exchange_pb2.ExchangeRequest(frame=exchange_pb2.Frame(barrier=BIG)),
            exchange_pb2.ExchangeRequest(frame=exchange_pb2.Frame(barrier=BIG + 1)),
            "`Frame.barrier`",
            id="a member of a oneof",
        ),
        pytest.param(
            coordination_pb2.Heartbeat(loads=[{"uncommitted_bytes": 2**42}] * 2),
            coordination_pb2.Heartbeat(loads=[{"uncommitted_bytes": 2**42}, {"uncommitted_bytes": 2**42 + 1}]),
            "`Load.uncommitted_bytes`",
            id="in a list of messages",
        ),
        pytest.param(
            coordination_pb2.Membership(assignment=[0, 65_535]),
            coordination_pb2.Membership(assignment=[0, 65_536]),
            "`Membership.assignment` is 65536",
            id="in a list",
        ),
        pytest.param(
            coordination_pb2.Flushed(key_group_bytes={65_535: BIG}),
            coordination_pb2.Flushed(key_group_bytes={65_536: 1}),
            "`Flushed.key_group_bytes` is 65536",
            id="the key of a map",
        ),
        pytest.param(
            coordination_pb2.BarrierPassed(offsets={"c": OFFSET}),
            coordination_pb2.BarrierPassed(offsets={"a": 1, "c": OFFSET + 1}),
            "`BarrierPassed.offsets`",
            id="the value of a map",
        ),
        pytest.param(
            table_pb2.TableDefinition(buckets=1),
            table_pb2.TableDefinition(buckets=0),
            "`TableDefinition.buckets` is 0, and has to lie between 1 and",
            id="an optional one",
        ),
        pytest.param(
            coordination_pb2.ControlResponse(welcome=coordination_pb2.Welcome(heartbeat_ms=1)),
            coordination_pb2.ControlResponse(welcome=coordination_pb2.Welcome()),
            "`Welcome.heartbeat_ms` is 0, and has to lie between 1 and",
            id="not set, where zero makes no sense",
        ),
    ],
)
def test_a_value_outside_is_named_with_its_range(fits: Any, too_large: Any, says: str) -> None:
    assert refused(fits) == ""
    assert says in refused(too_large)


def test_what_is_not_set_is_in_no_range() -> None:
    assert refused(table_pb2.TableDefinition()) == ""
    assert refused(ingest_pb2.AppendRequest()) == ""
    assert refused(coordination_pb2.ControlResponse()) == ""
