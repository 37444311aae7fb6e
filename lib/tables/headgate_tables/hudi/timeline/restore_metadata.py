"""Restoring a table: HoodieRestorePlan in ``R.restore.requested``, HoodieRestoreMetadata in ``R_C.restore``
(Hudi: BaseRestoreActionExecutor). Each undone instant counts as one rollback, newest first.
"""

from collections.abc import Mapping, Sequence
from functools import cache

from headgate_tables.commitlog.fields import Json
from headgate_tables.hudi.timeline.avro_container import STRING, VERSION, Container, array, mapping, optional, record, required
from headgate_tables.hudi.timeline.instant import Instant


def _instant_info() -> dict[str, Json]:
    return record("HoodieInstantInfo", [required("commitTime", STRING), required("action", STRING)])


@cache
def _plan_container() -> Container:
    fields: list[dict[str, Json]] = [
        {"name": "instantsToRollback", "type": array(_instant_info()), "default": []},
        {"name": "version", "type": ["int", "null"], "default": 2},
        optional("savepointToRestoreTimestamp", STRING),
    ]
    return Container(record("HoodieRestorePlan", fields))


@cache
def _container() -> Container:
    sizes = mapping("long")
    partition = record(
        "HoodieRollbackPartitionMetadata",
        [
            required("partitionPath", STRING),
            required("successDeleteFiles", array(STRING)),
            required("failedDeleteFiles", array(STRING)),
            optional("rollbackLogFiles", sizes),
            optional("logFilesFromFailedCommit", sizes),
        ],
    )
    rollback = record(
        "HoodieRollbackMetadata",
        [
            required("startRollbackTime", STRING),
            required("timeTakenInMillis", "long"),
            required("totalFilesDeleted", "int"),
            required("commitsRollback", array(STRING)),
            required("partitionMetadata", mapping(partition)),
            VERSION,
            {"name": "instantsRollback", "type": array(_instant_info()), "default": []},
        ],
    )
    fields: list[dict[str, Json]] = [
        required("startRestoreTime", STRING),
        required("timeTakenInMillis", "long"),
        required("instantsToRollback", array(STRING)),
        required("hoodieRestoreMetadata", mapping(array(["null", rollback]))),
        VERSION,
        {"name": "restoreInstantInfo", "type": array("org.apache.hudi.avro.model.HoodieInstantInfo"), "default": []},
    ]
    return Container(record("HoodieRestoreMetadata", fields))


def encode_restore_plan(savepoint: str, undone: Sequence[Instant]) -> bytes:
    """The content of ``R.restore.requested``. ``undone``: the instants to remove, in any order."""
    content: dict[str, Json] = {"instantsToRollback": _infos(undone), "version": 2, "savepointToRestoreTimestamp": savepoint}
    return _plan_container().encode(content)


def encode_restore(instant: str, undone: Sequence[Instant], files: Mapping[str, Sequence[str]]) -> bytes:
    """The content of ``R_C.restore``. ``instant``: R. ``files``: paths, from the table's root, of the deleted data files, by
    undone instant.
    """
    content: dict[str, Json] = {
        "startRestoreTime": instant,
        "timeTakenInMillis": 0,
        "instantsToRollback": [each.time for each in _newest_first(undone)],
        "hoodieRestoreMetadata": {each.time: [_rollback(instant, each, files.get(each.time, ()))] for each in undone},
        "version": 1,
        "restoreInstantInfo": _infos(undone),
    }
    return _container().encode(content)


def _rollback(restore: str, undone: Instant, paths: Sequence[str]) -> dict[str, Json]:
    """Names files without folders, so that the table can be moved; Hudi uses only the last part of a path."""
    files: dict[str, list[str]] = {}
    for path in paths:
        partition, _, name = path.rpartition("/")
        files.setdefault(partition, []).append(name)
    return {
        "startRollbackTime": restore,
        "timeTakenInMillis": 0,
        "totalFilesDeleted": len(paths),
        "commitsRollback": [undone.time],
        "partitionMetadata": {partition: _deleted(partition, names) for partition, names in files.items()},
        "version": 1,
        "instantsRollback": _infos([undone]),
    }


def _deleted(partition: str, names: Sequence[str]) -> dict[str, Json]:
    deleted: dict[str, Json] = {"partitionPath": partition, "successDeleteFiles": names, "failedDeleteFiles": []}
    return {**deleted, "rollbackLogFiles": {}, "logFilesFromFailedCommit": {}}


def _infos(undone: Sequence[Instant]) -> list[dict[str, str]]:
    return [{"commitTime": each.time, "action": each.action} for each in _newest_first(undone)]


def _newest_first(undone: Sequence[Instant]) -> list[Instant]:
    return sorted(undone, key=lambda each: each.time, reverse=True)
