"""Avro schemas as JSON (Avro 1.11, "Schema Declaration"). The types say what may be where; nothing is checked."""

from __future__ import annotations

from typing import Required, TypeAlias, TypedDict


class AvroField(TypedDict):
    """One field of a record."""

    name: str
    type: AvroSchema


class AvroType(TypedDict, total=False):
    """A type that is spelled out. Which of the keys it has depends on ``type``."""

    type: Required[AvroSchema]
    name: str
    namespace: str
    fields: list[AvroField]
    items: AvroSchema
    values: AvroSchema
    symbols: list[str]
    size: int
    logicalType: str
    precision: int
    scale: int


AvroSchema: TypeAlias = "str | list[AvroSchema] | AvroType"
"""A type's name, a union, or a type that is spelled out."""


def spelled_out(schema: AvroSchema) -> AvroType:
    """The schema. Raises TypeError for a name and for a union."""
    if not isinstance(schema, dict):
        raise TypeError(f"{schema!r} is not spelled out")
    return schema
