"""A table's definition on its way between services. Both ends import the table library; this package does not."""

import uuid
from collections.abc import Mapping
from typing import Protocol, TypedDict

from headgate_proto.cluster.v1.table_pb2 import BucketRule, NamedFileGroup, TableDefinition
from headgate_runtime.descriptions import DefinitionLike
from headgate_runtime.errors import UnknownMessageError
from headgate_runtime.messages import check_complete

_WHAT = "a definition of a table"


class WholeDefinition(DefinitionLike, Protocol):
    """All of ``headgate_tables.face.definition.Definition``."""

    @property
    def name(self) -> str: ...

    @property
    def url_encode(self) -> bool: ...

    @property
    def key_groups(self) -> int: ...

    @property
    def prefixed_keys(self) -> bool: ...

    @property
    def rescaled(self) -> str: ...

    @property
    def groups(self) -> Mapping[str, Mapping[int, str]]: ...


class DefinitionFields(TypedDict):
    """The arguments of a ``Definition``, without its schema."""

    name: str
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering: str | None
    buckets: int
    hive_style: bool
    url_encode: bool
    table_uuid: uuid.UUID
    key_groups: int
    prefixed_keys: bool
    groups: Mapping[str, Mapping[int, str]]
    rescaled: str
    bucket_rules: tuple[tuple[str, int, str], ...]


def definition_message(definition: WholeDefinition) -> TableDefinition:
    """Returns the message of a definition, for an order to a writer or compactor."""
    groups = [
        NamedFileGroup(partition=partition, bucket=bucket, file_id=file_id)
        for partition, each in definition.groups.items()
        for bucket, file_id in each.items()
    ]
    return TableDefinition(
        name=definition.name,
        schema=definition.schema.serialize().to_pybytes(),
        record_key=definition.record_key,
        partition_by=definition.partition_by,
        ordering=definition.ordering,
        buckets=definition.buckets,
        hive_style=definition.hive_style,
        url_encode=definition.url_encode,
        table_uuid=str(definition.table_uuid),
        key_groups=definition.key_groups,
        prefixed_keys=definition.prefixed_keys,
        groups=groups,
        rescaled=definition.rescaled,
        bucket_rules=[
            BucketRule(pattern=pattern, buckets=buckets, since=since) for pattern, buckets, since in definition.bucket_rules
        ],
    )


def definition_fields(message: TableDefinition) -> DefinitionFields:
    """Returns the fields of a definition. Raises UnknownMessageError for a missing, unknown or meaningless field."""
    check_complete(message, _WHAT, may_lack=("ordering",))
    for name in ("record_key", "buckets", "key_groups"):
        if not getattr(message, name):
            raise UnknownMessageError(f"{_WHAT} with an empty `{name}`")
    return DefinitionFields(
        name=message.name,
        record_key=tuple(message.record_key),
        partition_by=tuple(message.partition_by),
        ordering=message.ordering if message.HasField("ordering") else None,
        buckets=message.buckets,
        hive_style=message.hive_style,
        url_encode=message.url_encode,
        table_uuid=_uuid(message.table_uuid),
        key_groups=message.key_groups,
        prefixed_keys=message.prefixed_keys,
        groups=_groups(message),
        rescaled=message.rescaled,
        bucket_rules=tuple(map(_bucket_rule, message.bucket_rules)),
    )


def _bucket_rule(rule: BucketRule) -> tuple[str, int, str]:
    check_complete(rule, "a bucket rule of a table's definition")
    return rule.pattern, rule.buckets, rule.since


def _uuid(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError as error:
        raise UnknownMessageError(f"{_WHAT} with the `table_uuid` {text!r}") from error


def _groups(message: TableDefinition) -> dict[str, dict[int, str]]:
    groups: dict[str, dict[int, str]] = {}
    for group in message.groups:
        check_complete(group, "a file group of a table's definition")
        groups.setdefault(group.partition, {})[group.bucket] = group.file_id
    return groups
