"""A savepoint: HoodieSavepointMetadata in ``T_C.savepoint``, T being the instant that it saves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from headgate_tables.commitlog.fields import Fields, Json, nullable, number, text
from headgate_tables.hudi.timeline.avro_container import STRING, VERSION, Container, array, decode, mapping, record, required


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


@dataclass(frozen=True, slots=True)
class Saved:
    """Who made a savepoint, when (ms since the epoch) and what for."""

    user: str
    at_ms: int
    comment: str


def decode_saved(data: bytes, path: str) -> Saved:
    """A savepoint of any version of Hudi, without its files. Raises CorruptFileError."""

    def make(fields: Fields) -> Saved:
        user, at_ms = fields.required("savepointedBy", text), fields.required("savepointedAt", number)
        return Saved(user, at_ms, fields.required("comments", nullable(text)) or "")

    return decode(data, path, ["HoodieSavepointMetadata"], make)
