"""A savepoint: HoodieSavepointMetadata in ``T_C.savepoint``, T being the instant that it saves."""

from collections.abc import Mapping, Sequence
from functools import cache

from headgate_tables.commitlog.fields import Json
from headgate_tables.hudi.timeline.avro_container import STRING, VERSION, Container, array, mapping, record, required


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
