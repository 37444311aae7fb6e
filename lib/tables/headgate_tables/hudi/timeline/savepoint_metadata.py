"""A savepoint: HoodieSavepointMetadata in ``T_C.savepoint``, T being the instant it saves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from headgate_tables.hudi.timeline.avro_container import STRING, VERSION, Container, array, decode, mapping, record, required


@dataclass(frozen=True, slots=True)
class SavedFiles:
    """A savepoint, read back. ``at_ms``: since the epoch. ``files``: names by partition, which no cleaning takes."""

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
    partitions = {name: {"partitionPath": name, "savepointDataFile": list(names)} for name, names in files.items()}
    content = {"savepointedBy": user, "savepointedAt": at_ms, "comments": comment}
    return _container().encode({**content, "partitionMetadata": partitions, "version": 1})


def decode_savepoint(data: bytes, path: str) -> SavedFiles:
    """A savepoint of any version of Hudi. Raises CorruptFileError."""
    return decode(data, path, ["HoodieSavepointMetadata"], _decode)


def _decode(content: Mapping[str, Any]) -> SavedFiles:
    # Old versions gave paths.
    files = {
        partition: tuple(path.rpartition("/")[2] for path in saved["savepointDataFile"])
        for partition, saved in content["partitionMetadata"].items()
    }
    return SavedFiles(content["savepointedBy"], content["savepointedAt"], content["comments"], files)
