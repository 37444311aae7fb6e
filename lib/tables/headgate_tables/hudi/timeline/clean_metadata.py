"""Cleaning: HoodieCleanerPlan in ``T.clean.requested``, HoodieCleanMetadata in ``T_C.clean``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from headgate_tables.commitlog.fields import Fields, Json, list_of, map_of, nullable, text, texts
from headgate_tables.hudi.timeline.avro_container import (
    STRING,
    VERSION,
    Container,
    array,
    decode,
    mapping,
    optional,
    record,
    required,
)

_FILE_NAMES = 2
"""The version whose metadata hold file names, and whose plan has a field of its own for paths."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """One cleaning.

    ``policy``: Hudi's term (KEEP_LATEST_COMMITS, KEEP_LATEST_BY_HOURS, KEEP_LATEST_FILE_VERSIONS). ``earliest``: the oldest
    instant whose slices are kept, "" for a policy without one; Hudi's next cleaning considers only newer ones.
    ``earliest_action``: its action, which only the plan records. ``last_completed``: the newest completed write when the cleaning
    was planned, or "". ``files``: names, without folder, of the files to delete, by partition.
    """

    instant: str
    policy: str
    earliest: str
    last_completed: str
    files: Mapping[str, Sequence[str]]
    earliest_action: str = ""


@cache
def _plan_container() -> Container:
    instant = record("HoodieActionInstant", [required(name, STRING) for name in ("timestamp", "action", "state")])
    file = record("HoodieCleanFileInfo", [optional("filePath", STRING), optional("isBootstrapBaseFile", "boolean")])
    fields: list[dict[str, Json]] = [
        optional("earliestInstantToRetain", instant),
        {"name": "lastCompletedCommitTimestamp", "type": STRING, "default": ""},
        required("policy", STRING),
        optional("filesToBeDeletedPerPartition", mapping(array(STRING))),
        VERSION,
        optional("filePathsToBeDeletedPerPartition", mapping(array(file))),
        optional("partitionsToBeDeleted", array(STRING)),
        optional("extraMetadata", mapping(STRING)),
    ]
    return Container(record("HoodieCleanerPlan", fields))


@cache
def _container() -> Container:
    lists = [required(name, array(STRING)) for name in ("deletePathPatterns", "successDeleteFiles", "failedDeleteFiles")]
    names = [required("partitionPath", STRING), required("policy", STRING), *lists, optional("isPartitionDeleted", "boolean")]
    partition = record("HoodieCleanPartitionMetadata", names)
    fields: list[dict[str, Json]] = [
        required("startCleanTime", STRING),
        required("timeTakenInMillis", "long"),
        required("totalFilesDeleted", "int"),
        required("earliestCommitToRetain", STRING),
        {"name": "lastCompletedCommitTimestamp", "type": STRING, "default": ""},
        required("partitionMetadata", mapping(partition)),
        VERSION,
        optional("bootstrapPartitionMetadata", mapping(partition["name"])),
        optional("extraMetadata", mapping(STRING)),
    ]
    return Container(record("HoodieCleanMetadata", fields))


def encode_clean_plan(cleaned: Cleaned, url: str) -> bytes:
    """The content of ``T.clean.requested``. ``url``: the table's root, because Hudi has full paths here: a Spark job that finds
    the cleaning unfinished deletes by them.
    """
    earliest = {"timestamp": cleaned.earliest, "action": cleaned.earliest_action, "state": "COMPLETED"}
    paths: Json = {
        partition: [{"filePath": "/".join(filter(None, (url, partition, name))), "isBootstrapBaseFile": False} for name in names]
        for partition, names in cleaned.files.items()
    }
    content: dict[str, Json] = {
        "earliestInstantToRetain": earliest if cleaned.earliest else None,
        "lastCompletedCommitTimestamp": cleaned.last_completed,
        "policy": cleaned.policy,
        "filesToBeDeletedPerPartition": {},
        "version": _FILE_NAMES,
        "filePathsToBeDeletedPerPartition": paths,
        "partitionsToBeDeleted": [],
        "extraMetadata": {},
    }
    return _plan_container().encode(content)


def encode_clean(cleaned: Cleaned) -> bytes:
    """The content of ``T_C.clean``. Files that were already gone count as deleted."""
    partitions: Json = {
        partition: {
            "partitionPath": partition,
            "policy": cleaned.policy,
            "deletePathPatterns": list(names),
            "successDeleteFiles": list(names),
            "failedDeleteFiles": [],
            "isPartitionDeleted": False,
        }
        for partition, names in cleaned.files.items()
    }
    content: dict[str, Json] = {
        "startCleanTime": cleaned.instant,
        "timeTakenInMillis": 0,
        "totalFilesDeleted": sum(map(len, cleaned.files.values())),
        "earliestCommitToRetain": cleaned.earliest,
        "lastCompletedCommitTimestamp": cleaned.last_completed,
        "partitionMetadata": partitions,
        "version": _FILE_NAMES,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": {},
    }
    return _container().encode(content)


def decode_clean(data: bytes, path: str) -> Cleaned:
    """A completed cleaning of any version of Hudi; ``files`` are those that it deleted. Raises CorruptFileError."""
    return decode(data, path, ["HoodieCleanMetadata"], _decode)


def _decode(fields: Fields) -> Cleaned:
    partitions = fields.required("partitionMetadata", _read_partitions)
    return Cleaned(
        fields.required("startCleanTime", text),
        next((policy for policy, _ in partitions.values()), ""),
        fields.required("earliestCommitToRetain", text),
        fields.required("lastCompletedCommitTimestamp", text),
        {partition: _names(paths) for partition, (_, paths) in partitions.items()},
    )


def _read_partition(value: object) -> tuple[str, Sequence[str]]:
    """A partition's policy, and the files that were deleted."""
    fields = Fields(value)
    return fields.required("policy", text), fields.required("successDeleteFiles", texts)


_read_partitions = map_of(_read_partition)


def decode_clean_plan(data: bytes, path: str, instant: str) -> Cleaned:
    """The plan of a cleaning that another program began; ``instant``: from its file's name. Raises CorruptFileError."""

    def make(fields: Fields) -> Cleaned:
        earliest, action = fields.required("earliestInstantToRetain", nullable(_read_earliest)) or ("", "")
        planned = fields.optional("filePathsToBeDeletedPerPartition", nullable(_read_planned)) or {}
        files = {partition: _names(paths) for partition, paths in planned.items()}
        completed = fields.required("lastCompletedCommitTimestamp", text)
        return Cleaned(instant, fields.required("policy", text), earliest, completed, files, action)

    return decode(data, path, ["HoodieCleanerPlan"], make)


def _read_earliest(value: object) -> tuple[str, str]:
    """Instant and action."""
    fields = Fields(value)
    return fields.required("timestamp", text), fields.required("action", text)


def _read_path(value: object) -> str:
    return Fields(value).required("filePath", text)


_read_planned = map_of(list_of(_read_path))


def _names(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(path.rpartition("/")[2] for path in paths)
