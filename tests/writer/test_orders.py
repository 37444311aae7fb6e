"""A table's definition as an order carries it: whole, or refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from headgate_proto.cluster.v1.table_pb2 import TableDefinition
from headgate_runtime.definitions import definition_message
from headgate_runtime.errors import UnknownMessageError
from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.definition import Definition
from headgate_writer.orders import read_definition
from support.tables import create

OPTIONAL = "ordering"


@pytest.fixture
def definition(tmp_path: Path) -> Definition:
    made = create(tmp_path).definition
    assert made is not None
    return replace(
        made,
        prefixed_keys=True,
        url_encode=True,
        groups={"": {1: "theirs"}, "p/q": {0: "a", 7: "b"}},
        rescaled="2",
        bucket_rules=(("p*", 3, "7"), ("q", 5, "")),
    )


def test_every_field_of_a_definition_comes_through(definition: Definition) -> None:
    for sent in (definition, replace(definition, ordering=None, partition_by=(), groups={})):
        found = read_definition(TableDefinition.FromString(definition_message(sent).SerializeToString()))
        assert found == sent
        assert (found.groups, found.rescaled, found.bucket_rules) == (sent.groups, sent.rescaled, sent.bucket_rules)
        assert found.schema.equals(sent.schema, check_metadata=True)


def test_a_definition_without_a_field_is_refused_and_none_is_taken_as_its_default(definition: Definition) -> None:
    single = [field.name for field in TableDefinition.DESCRIPTOR.fields if field.has_presence and field.name != OPTIONAL]
    assert len(single) == 8
    for name in [*single, "record_key"]:
        message = definition_message(definition)
        message.ClearField(name)  # type: ignore[arg-type]
        with pytest.raises(UnknownMessageError, match=name):
            read_definition(message)
    message = definition_message(definition)
    message.groups[0].ClearField("bucket")
    with pytest.raises(UnknownMessageError, match="a file group of a table's definition without `bucket`"):
        read_definition(message)


def test_a_definition_with_a_field_or_value_that_is_not_known_is_refused(definition: Definition) -> None:
    newer = definition_message(definition).SerializeToString() + b"\xf8\x01\x01"  # field 31, a varint
    with pytest.raises(UnknownMessageError, match="a definition of a table with the field 31 is unknown here"):
        read_definition(TableDefinition.FromString(newer))
    for name, value in (("buckets", 0), ("key_groups", 0), ("table_uuid", "no uuid")):
        message = definition_message(definition)
        setattr(message, name, value)
        with pytest.raises(UnknownMessageError, match=name):
            read_definition(message)
    message = definition_message(definition)
    message.schema = b"no schema"
    with pytest.raises(CorruptFileError, match="holds no Arrow schema"):
        read_definition(message)
