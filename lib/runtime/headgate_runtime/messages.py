"""Checks messages in which every field matters: one that lacks a field, or has an unknown one, is refused."""

from collections.abc import Collection

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from headgate_runtime.errors import UnknownMessageError


def check_complete(message: Message, what: str, may_lack: Collection[str] = ()) -> None:
    """Raises UnknownMessageError, which names the field, unless all fields are there and known. Lists may be empty.

    ``what``: the kind of message, with its article.
    """
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and field.name not in may_lack and not message.HasField(field.name):
            raise UnknownMessageError(f"{what} without `{field.name}`")
    unknown = UnknownFieldSet(message)
    if len(unknown):
        raise UnknownMessageError(f"{what} with the field {unknown[0].field_number}")
