"""Reads savepoints: what Spark wrote, to be compared with what we write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate_tables.commitlog.fields import Fields, map_of, number, text, texts
from headgate_tables.hudi.timeline.avro_container import decode


@dataclass(frozen=True, slots=True)
class SavedFiles:
    """A decoded savepoint. ``at_ms``: since the epoch. ``files``: names by partition, which no cleaning deletes."""

    user: str
    at_ms: int
    comment: str
    files: Mapping[str, Sequence[str]]


def decode_savepoint(data: bytes, path: str) -> SavedFiles:
    """A savepoint of any version of Hudi."""
    return decode(data, path, ["HoodieSavepointMetadata"], _decode)


def _decode(fields: Fields) -> SavedFiles:
    user, at_ms = fields.required("savepointedBy", text), fields.required("savepointedAt", number)
    return SavedFiles(user, at_ms, fields.required("comments", text), fields.required("partitionMetadata", _read_partitions))


def _read_names(value: object) -> tuple[str, ...]:
    """Old versions have paths."""
    return tuple(path.rpartition("/")[2] for path in Fields(value).required("savepointDataFile", texts))


_read_partitions = map_of(_read_names)
