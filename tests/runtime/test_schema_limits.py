"""What a schema may spell, from both sides of each limit, and that what serializers write passes."""

from dataclasses import replace

import pyarrow as pa
import pytest

from headgate_runtime.errors import RpcError
from headgate_runtime.flatbuffer import DamagedError
from headgate_runtime.schema_limits import SchemaLimits, read_declared
from support import schema_bombs
from support.arrow_batches import schema_message
from support.flatbuffers import Scalar, Table, Text, Vector
from support.schema_bombs import column, pair, schema_of

LIMITS = SchemaLimits()


def refusal(message: bytes, limits: SchemaLimits = LIMITS) -> str:
    """Code and message of what is too large; "" when it is taken."""
    try:
        read_declared(message, limits)
    except RpcError as refused:
        return str(refused)
    return ""


def test_what_is_made_by_hand_is_read_by_arrow_as_it_was_meant() -> None:
    made = schema_of(
        [column("a"), column("b", children=Vector([]), metadata=Vector([pair(b"k", b"v")]))], Vector([pair(b"x", b"y")])
    )
    wanted = pa.schema([("a", pa.int32()), pa.field("b", pa.int32(), metadata={"k": "v"})], {"x": "y"})
    assert pa.ipc.read_schema(pa.py_buffer(made)).equals(wanted, check_metadata=True)
    assert [field.name for field in read_declared(made, LIMITS).fields] == ["'a'", "'b'"]


@pytest.mark.parametrize("name", schema_bombs.SCHEMAS)
def test_a_part_that_is_reached_twice_is_refused_before_it_is_expanded(name: str) -> None:
    message = schema_bombs.SCHEMAS[name]()
    assert len(message) <= LIMITS.message_bytes
    with pytest.raises(DamagedError, match="used twice"):
        read_declared(message, LIMITS)


def test_an_honest_schema_of_every_limit_passes() -> None:
    names = [f"{number:04}" + "n" * 40 for number in range(2_000)]
    wide = schema_message(
        pa.schema([pa.field(name, pa.timestamp("us", "UTC"), metadata={"id": name[:4]}) for name in names[:1_500]])
    )
    assert refusal(wide) == ""
    assert refusal(schema_message(pa.schema([(name, pa.int8()) for name in names]))) == ""
    assert (
        refusal(schema_message(pa.schema([("a", pa.dictionary(pa.int32(), pa.string())), ("b", pa.uuid()), ("c", pa.json_())])))
        == ""
    )


def test_the_bytes_of_a_name() -> None:
    assert refusal(schema_message(pa.schema([("ä" * 127 + "a", pa.int8())]))) == ""
    message = refusal(schema_message(pa.schema([("ä" * 128, pa.int8())])))
    assert "256, and the limit is 255" in message
    assert len(message) < 200


def test_a_name_that_is_not_utf8() -> None:
    """Arrow reads it, and its user fails later."""
    zone = Table({0: Scalar("<h", 2), 1: Text(b"\xff")})
    for made in (column(Text(b"\xff\xfe")), column(kind=10, described=zone)):
        with pytest.raises(DamagedError, match="UTF-8"):
            read_declared(schema_of([made]), LIMITS)


def test_entries_of_metadata_of_schema_and_columns_together() -> None:
    schema = pa.schema([pa.field("a", pa.int8(), metadata={"x": "1", "y": "2"})], {"z": "3"})
    assert refusal(schema_message(schema), replace(LIMITS, metadata=3)) == ""
    assert "metadata" in refusal(schema_message(schema), replace(LIMITS, metadata=2))


def test_levels_of_nesting() -> None:
    assert refusal(schema_bombs.deep(16)) == ""
    assert "levels" in refusal(schema_bombs.deep(17))
    assert "levels" in refusal(schema_bombs.deep(1_500))


def test_the_size_of_values_that_all_have_one() -> None:
    assert refusal(schema_bombs.wide_values(1 << 20)) == ""
    assert "'c'" in refusal(schema_bombs.wide_values((1 << 20) + 1))
    assert refusal(schema_message(pa.schema([("l", pa.list_(pa.int8(), 1 << 20))]))) == ""
    assert "'l'" in refusal(schema_message(pa.schema([("l", pa.list_(pa.int8(), (1 << 20) + 1))])))
    with pytest.raises(DamagedError, match="negative"):
        read_declared(schema_bombs.wide_values(-1), LIMITS)
