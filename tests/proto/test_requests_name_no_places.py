"""No request of a client names an address or a path: callers name tables, and the cluster knows where these lie."""

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from headgate_tables.errors import OptionError
from headgate_tables.face.settings import SETTINGS, TableSettings
from support.contracts import METHODS

TEXTS = {
    "AppendRequest.batch.operation_column": "a column of the batch",
    "AppendRequest.batch.rows": "Arrow",
    "AppendRequest.batch.schema": "Arrow",
    "AppendRequest.open.channel": "a channel",
    "AppendRequest.open.table": "a table",
    "AppendRequest.open.table_uuid": "its id",
    "AppendRequest.part.content": "a part of this request",
    "AdoptRequest.table": "a table of the store",
    "ArchiveRequest.table": "a table",
    "AlterRequest.add": "Arrow",
    "AlterRequest.nullable": "columns",
    "AlterRequest.table": "a table",
    "AlterRequest.widen": "Arrow",
    "ChangeVersionRequest.table": "a table",
    "CleanRequest.table": "a table",
    "CompactRequest.table": "a table",
    "ConfigureRequest.settings.key": "a setting of the table",
    "ConfigureRequest.settings.value": "its value: a number, a time, a size",
    "ConfigureRequest.table": "a table",
    "ConfigureRequest.unset": "a setting of the table",
    "CreateTableRequest.name": "a table",
    "CreateTableRequest.ordering": "a column",
    "CreateTableRequest.partition_by": "a column",
    "CreateTableRequest.record_key": "columns",
    "CreateTableRequest.schema": "Arrow",
    "DescribeTableRequest.name": "a table",
    "DescribeTableRequest.table_uuid": "its id",
    "EvolveRequest.columns": "Arrow",
    "EvolveRequest.table": "a table",
    "DropRequest.table": "a table",
    "DropRequest.table_uuid": "its id",
    "RenameRequest.table": "a table",
    "RenameRequest.table_uuid": "its id",
    "RenameRequest.to": "a table",
    "UndropRequest.table": "a table",
    "LendRequest.table": "a table",
    "ListChannelsRequest.after": "a channel",
    "ListChannelsRequest.prefix": "how channels begin",
    "ListChannelsRequest.table": "a table",
    "RestoreRequest.instant": "an instant of the timeline",
    "RestoreRequest.table": "a table",
    "RepairRequest.table": "a table",
    "SavepointRequest.comment": "for people",
    "SavepointRequest.remove": "an instant of the timeline",
    "SavepointRequest.table": "a table",
    "SliceRequest.comment": "for people",
    "SliceRequest.readmit": "a slice of the table",
    "SliceRequest.set_aside": "a slice of the table",
    "SliceRequest.table": "a table",
    "TruncateRequest.partitions": "partitions of a table",
    "TruncateRequest.table": "a table",
    "StatusRequest.table": "a table",
}
"""What each text and each row of bytes of a client's request says."""
OF_PLACES = {"addr", "address", "bucket", "dir", "endpoint", "file", "folder", "host", "location", "options", "path", "root"}
OF_PLACES |= {"server", "store", "target", "uri", "url"}
"""Words of names. Numbers may be called so: how many buckets a table has is no place."""


def texts(kind: Descriptor, at: str, inside: frozenset[str] = frozenset()) -> Iterator[tuple[str, FieldDescriptor]]:
    """Fields of texts and bytes of a message and those in it, by their path."""
    for field in kind.fields:
        path = f"{at}.{field.name}"
        if field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
            yield path, field
        elif field.message_type is not None and field.message_type.full_name not in inside:
            yield from texts(field.message_type, path, inside | {kind.full_name})


FOUND = {
    path: field
    for name, method in METHODS.items()
    if name.startswith("headgate.api.")
    for path, field in texts(method.input_type, method.input_type.name)
}


def test_each_text_of_a_clients_request_is_known_and_names_no_place() -> None:
    assert FOUND.keys() == TEXTS.keys(), "say here what the new text names; an address or a path is not taken from clients"


@pytest.mark.parametrize("key", [setting.key for setting in SETTINGS.values()])
def test_no_setting_of_a_table_can_be_a_place(key: str) -> None:
    for place in ("s3://other/place", "/etc/passwd", "http://169.254.169.254/"):
        with pytest.raises(OptionError):
            TableSettings.from_texts({key: place})


def test_no_text_of_a_clients_request_is_called_like_a_place() -> None:
    for path, field in FOUND.items():
        assert not OF_PLACES & set(field.name.split("_")), path
