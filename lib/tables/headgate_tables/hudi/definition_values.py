"""How the values of a table's definition are written in slots."""

import base64
import uuid
from collections.abc import Mapping, Sequence

import pyarrow as pa

from headgate_tables.commitlog.fields import Json, UnfitError, json_list, json_map, list_of, map_of, number, text
from headgate_tables.errors import CorruptFileError
from headgate_tables.face.bucket_rules import BucketRule


def read_base64(value: object) -> bytes:
    """Bytes that are written in base64. Raises UnfitError."""
    try:
        return base64.b64decode(text(value))
    except ValueError as error:
        raise UnfitError("does not hold base64") from error


def read_uuid(value: object) -> uuid.UUID:
    """In its text form. Raises UnfitError."""
    try:
        return uuid.UUID(text(value))
    except ValueError as error:
        raise UnfitError("does not hold a UUID") from error


def read_instant(value: object) -> str:
    """An instant, or "" for none. Raises UnfitError."""
    instant = text(value)
    if instant and not (instant.isascii() and instant.isdigit()):
        raise UnfitError("does not hold an instant")
    return instant


def _read_bucket_rule(value: object) -> BucketRule:
    fields = json_list(value)
    if len(fields) != 3:
        raise UnfitError("holds something other than a pattern, a number of buckets and an instant")
    pattern, buckets, since = fields
    return BucketRule(text(pattern), number(buckets), read_instant(since))


read_bucket_rules = list_of(_read_bucket_rule)
"""Rules, the first of which counts."""


def _read_buckets(value: object) -> dict[int, str]:
    try:
        return {int(bucket): text(file_id) for bucket, file_id in json_map(value).items()}
    except ValueError as error:
        raise UnfitError("holds something other than buckets") from error


read_groups = map_of(_read_buckets)
"""File group ids by partition and bucket."""


def read_schema(data: bytes) -> pa.Schema:
    """From an Arrow IPC schema message. Raises CorruptFileError."""
    try:
        return pa.ipc.read_schema(pa.py_buffer(data))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptFileError(
            f"a table's definition holds no Arrow schema: {error}",
            fix="Restore the commit log from a copy of the table; bring all services of a cluster to the same version.",
        ) from error


def encode_schema(schema: pa.Schema) -> str:
    """Its text in CONFIG and ADOPT slots."""
    return base64.b64encode(schema.serialize()).decode()


def encode_bucket_rules(rules: Sequence[tuple[str, int, str]]) -> list[Json]:
    """Their JSON in slots."""
    return [list(rule) for rule in rules]


def encode_groups(groups: Mapping[str, Mapping[int, str]]) -> dict[str, dict[str, str]]:
    """Their JSON in CONFIG and ADOPT slots."""
    return {partition: {str(bucket): file_id for bucket, file_id in each.items()} for partition, each in groups.items()}
