"""Describes a table to clients, in the same way in every service."""

from collections.abc import Sequence
from typing import Protocol

from headgate_proto.api.v1 import tables_pb2
from headgate_proto.api.v1.tables_pb2 import PartitionBuckets, TableDescription


class Serialized(Protocol):
    """Bytes in Arrow's memory."""

    def to_pybytes(self) -> bytes: ...


class SerializableSchema(Protocol):
    """The part of a pyarrow schema that is used here."""

    def serialize(self) -> Serialized: ...


class DefinitionLike(Protocol):
    """The part of ``headgate_tables.face.definition.Definition`` that clients see. ``schema``: a pyarrow schema."""

    @property
    def schema(self) -> SerializableSchema: ...

    @property
    def record_key(self) -> Sequence[str]: ...

    @property
    def partition_by(self) -> Sequence[str]: ...

    @property
    def ordering(self) -> str | None: ...

    @property
    def buckets(self) -> int: ...

    @property
    def bucket_rules(self) -> Sequence[tuple[str, int, str]]: ...

    @property
    def hive_style(self) -> bool: ...

    @property
    def table_uuid(self) -> object: ...


_EVOLUTIONS = {
    "refuse": tables_pb2.EVOLUTION_REFUSE,
    "add": tables_pb2.EVOLUTION_ADD,
    "add-and-widen": tables_pb2.EVOLUTION_ADD_AND_WIDEN,
}


def describe(
    name: str, url: str, definition: DefinitionLike, table_version: int = 0, evolve: str | None = None
) -> TableDescription:
    """Returns the description. ``url``: where readers find the table. ``table_version`` 0 and ``evolve`` None: not known.

    ``evolve``: the setting ``headgate.evolve``.
    """
    return TableDescription(
        name=name,
        schema=definition.schema.serialize().to_pybytes(),
        record_key=definition.record_key,
        partition_by=definition.partition_by,
        ordering=definition.ordering or "",
        buckets=definition.buckets,
        partition_buckets=[PartitionBuckets(pattern=pattern, buckets=buckets) for pattern, buckets, _ in definition.bucket_rules],
        hive_style=definition.hive_style,
        url=url,
        table_uuid=str(definition.table_uuid),
        table_version=table_version,
        evolution=tables_pb2.EVOLUTION_UNSPECIFIED if evolve is None else _EVOLUTIONS[evolve],
    )
