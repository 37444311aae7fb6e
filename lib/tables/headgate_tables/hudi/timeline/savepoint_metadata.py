"""A savepoint: HoodieSavepointMetadata in ``T_C.savepoint``, T being the instant that it saves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from headgate_tables.commitlog.fields import Fields, Json, map_of, number, text, texts
from headgate_tables.hudi.timeline.avro_container import STRING, VERSION, Container, array, decode, mapping, record, required


@dataclass(frozen=True, slots=True)
class SavedFiles:
    """A decoded savepoint. ``at_ms``: since the epoch. ``files``: names by partition, which no cleaning deletes."""

    user: str
    at_ms: int
    comment: str
    files: Mapping[str, Sequence[str]]


@cache
def _container() -> Container:
    partition = record(
        "HoodieSavepointPartitionMetadata", [required("partitionPath", STRING), required("savepointDataFile", array(STRING))]
    )
    fields = [required("savepointedBy", STRING), required("savepointedAt", "long"), required("comments", STRING)]
    return Container(record("HoodieSavepointMetadata", [*fields, required("partitionMetadata", mapping(partition)), VERSION]))


def encode_savepoint(*, user: str, at_ms: int, comment: str, files: Mapping[str, Sequence[str]]) -> bytes:
    """``files``: names of base and log files of the latest slices as of the saved instant, by partition."""
    partitions: Json = {name: {"partitionPath": name, "savepointDataFile": list(names)} for name, names in files.items()}
    content: dict[str, Json] = {"savepointedBy": user, "savepointedAt": at_ms, "comments": comment}
    return _container().encode({**content, "partitionMetadata": partitions, "version": 1})


def decode_savepoint(data: bytes, path: str) -> SavedFiles:
    """A savepoint of any version of Hudi. Raises CorruptFileError."""
    return decode(data, path, ["HoodieSavepointMetadata"], _decode)


def _decode(fields: Fields) -> SavedFiles:
    user, at_ms = fields.required("savepointedBy", text), fields.required("savepointedAt", number)
    return SavedFiles(user, at_ms, fields.required("comments", text), fields.required("partitionMetadata", _read_partitions))


def _read_names(value: object) -> tuple[str, ...]:
    """Old versions have paths."""
    return tuple(path.rpartition("/")[2] for path in Fields(value).required("savepointDataFile", texts))


_read_partitions = map_of(_read_names)
