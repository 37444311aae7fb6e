"""Cleaning: HoodieCleanerPlan in ``T.clean.requested``, HoodieCleanMetadata in ``T_C.clean``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

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
"""The version whose metadata give file names, and whose plan gives paths in a field of their own."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """One cleaning.

    ``policy``: Hudi's word (KEEP_LATEST_COMMITS, KEEP_LATEST_BY_HOURS, KEEP_LATEST_FILE_VERSIONS). ``earliest``: the oldest
    instant whose slices are kept, "" for a policy that has none; Hudi's next cleaning looks only at what is newer.
    ``earliest_action``: its action, which only the plan records. ``last_completed``: the newest completed write when the cleaning
    was planned, or "". ``files``: names, without folder, of the files that go, by partition.
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
    fields = [
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
    fields = [
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
    """The content of ``T.clean.requested``. ``url``: the table's root, as Hudi wants full paths here: a Spark job that finds the
    cleaning unfinished deletes by them.
    """
    earliest = {"timestamp": cleaned.earliest, "action": cleaned.earliest_action, "state": "COMPLETED"}
    paths = {
        partition: [{"filePath": "/".join(filter(None, (url, partition, name))), "isBootstrapBaseFile": False} for name in names]
        for partition, names in cleaned.files.items()
    }
    content: dict[str, Any] = {
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
    """The content of ``T_C.clean``. A file that is gone already counts as deleted."""
    partitions = {
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
    content = {
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


def _decode(content: Mapping[str, Any]) -> Cleaned:
    partitions = content["partitionMetadata"]
    return Cleaned(
        content["startCleanTime"],
        next((each["policy"] for each in partitions.values()), ""),
        content["earliestCommitToRetain"],
        content["lastCompletedCommitTimestamp"],
        {partition: _names(each["successDeleteFiles"]) for partition, each in partitions.items()},
    )


def decode_clean_plan(data: bytes, path: str, instant: str) -> Cleaned:
    """A cleaning that another program began; ``instant`` is the one of its file. Raises CorruptFileError."""

    def make(content: Mapping[str, Any]) -> Cleaned:
        earliest = content["earliestInstantToRetain"] or {"timestamp": "", "action": ""}
        planned = content.get("filePathsToBeDeletedPerPartition") or {}
        files = {partition: _names([file["filePath"] for file in each]) for partition, each in planned.items()}
        completed = content["lastCompletedCommitTimestamp"]
        return Cleaned(instant, content["policy"], earliest["timestamp"], completed, files, earliest["action"])

    return decode(data, path, ["HoodieCleanerPlan"], make)


def _names(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(path.rpartition("/")[2] for path in paths)
