"""Holds the integers of a message to the ranges that the contracts declare (``ranges.proto``).

A check is compiled once per message type, from its descriptor. It looks only at fields with a range, so the rows of a batch, its
bytes and names cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from headgate_proto.api.v1 import ranges_pb2

INTEGERS: Final = frozenset(
    [
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
    ]
)

_Check: TypeAlias = Callable[[Any], None]
"""Raises OutOfRangeError. Takes a message, or the value of one field."""


class OutOfRangeError(ValueError):
    """``field``: "Message.field". Its value lies outside of ``least`` to ``most``."""

    def __init__(self, field: str, value: int, least: int, most: int) -> None:
        super().__init__(f"`{field}` is {value}, and has to lie between {least} and {most}")
        self.field = field
        self.value = value
        self.least = least
        self.most = most


def check_ranges(message: Message) -> None:
    """Raises OutOfRangeError for the first integer outside its range, in the message or in those inside it."""
    check = _check_of(message.DESCRIPTOR)
    if check is not None:
        check(message)


def declared_range(field: FieldDescriptor, *, of_keys: bool = False) -> ranges_pb2.Range | None:
    """Returns what the field declares; None when it declares nothing. ``of_keys``: for the keys of a map."""
    options, extension = field.GetOptions(), ranges_pb2.key_range if of_keys else ranges_pb2.range
    return options.Extensions[extension] if options.HasExtension(extension) else None


@cache
def _check_of(kind: Descriptor) -> _Check | None:
    """None when nothing in such a message has a range. No message of the contracts holds its own kind."""
    choices = [_choice(choice.name, choice.fields) for choice in kind.oneofs if not choice.name.startswith("_")]
    fields = [_field(field) for field in kind.fields if field.containing_oneof is None or not _is_choice(field)]
    checks = [check for check in (*choices, *fields) if check is not None]
    return _all(checks) if checks else None


def _is_choice(field: FieldDescriptor) -> bool:
    """Whether the field is one of several of which one is set; an ``optional`` one has a oneof of its own in descriptors."""
    return field.containing_oneof is not None and not field.containing_oneof.name.startswith("_")


def _all(checks: Sequence[_Check]) -> _Check:
    if len(checks) == 1:
        return checks[0]

    def check(message: Any) -> None:
        for each in checks:
            each(message)

    return check


def _choice(name: str, fields: Sequence[FieldDescriptor]) -> _Check | None:
    checks = {field.name: inside for field in fields if (inside := _value(field)) is not None}
    if not checks:
        return None

    def check(message: Any) -> None:
        chosen = message.WhichOneof(name)
        if chosen in checks:
            checks[chosen](getattr(message, chosen))

    return check


def _field(field: FieldDescriptor) -> _Check | None:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _map(field, field.message_type)
    name, value = field.name, _value(field)
    if value is None:
        return None
    if field.is_repeated:
        return _each(name, value)
    return _if_set(name, value) if field.has_presence else _always(name, value)


def _each(name: str, value: _Check) -> _Check:
    def check(message: Any) -> None:
        for each in getattr(message, name):
            value(each)

    return check


def _if_set(name: str, value: _Check) -> _Check:
    def check(message: Any) -> None:
        if message.HasField(name):
            value(getattr(message, name))

    return check


def _always(name: str, value: _Check) -> _Check:
    return lambda message: value(getattr(message, name))


def _map(field: FieldDescriptor, entry: Descriptor) -> _Check | None:
    keys = _value(entry.fields_by_name["key"], field, of_keys=True)
    values = _value(entry.fields_by_name["value"], field)
    name = field.name

    def check(message: Any) -> None:
        found = getattr(message, name)
        if values is not None:
            for each in found.values():
                values(each)
        if keys is not None:
            for each in found:
                keys(each)

    return check if keys or values else None


def _value(field: FieldDescriptor, declares: FieldDescriptor | None = None, *, of_keys: bool = False) -> _Check | None:
    """Of one value of the field. ``declares``: the field with the options, if it is another one: a map's, for its entries."""
    if field.message_type is not None:
        return _check_of(field.message_type)
    declares = declares or field
    declared = declared_range(declares, of_keys=of_keys) if field.cpp_type in INTEGERS else None
    if declared is None:
        return None
    name, least, most = ".".join(declares.full_name.split(".")[-2:]), declared.min, declared.max

    def check(value: int) -> None:
        if not least <= value <= most:
            raise OutOfRangeError(name, value, least, most)

    return check
