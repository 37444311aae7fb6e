"""The file groups that another program left, by bucket: which ids writers have to know, and what cannot be written on."""

from headgate_tables.errors import CorruptFileError, UnsupportedTableError
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.bucket import bucket_of
from headgate_tables.hudi.view import FileGroup, FileSystemView


def groups_by_bucket(definition: Definition, view: FileSystemView) -> dict[str, dict[int, str]]:
    """File groups whose ids are not those that writers would compute (rule FI1). Raises UnsupportedTableError."""
    groups = {partition: dict(each) for partition, each in definition.groups.items()}
    _check_index(definition, view)
    seen: dict[tuple[str, int], str] = {}
    for group in view.groups():
        key = group.partition, bucket_of(group.file_id)
        if key[1] >= definition.buckets:
            raise UnsupportedTableError(
                f"the file group {group.file_id} in {group.partition!r} is of bucket {key[1]}, "
                f"but the table has {definition.buckets} buckets",
                fix="The other program counted buckets differently: load the table's rows into a new one.",
            )
        if key in seen:
            raise UnsupportedTableError(
                f"bucket {key[1]} of {group.partition!r} has two file groups, {seen[key]} and {group.file_id}",
                fix="Rows of one key may be in both: load the table's rows into a new table.",
            )
        seen[key] = group.file_id
        if definition.file_id(*key) != group.file_id:
            groups.setdefault(key[0], {})[key[1]] = group.file_id
    for partition, file_id in view.replaced():
        bucket = bucket_of(file_id)
        if (partition, bucket) not in seen and definition.file_id(partition, bucket) == file_id:
            groups.setdefault(partition, {})[bucket] = _unused(definition, view, partition, bucket)
    return groups


def _unused(definition: Definition, view: FileSystemView, partition: str, bucket: int) -> str:
    """The next file id that was not replaced: a replaced one stays invisible."""
    k = 1
    while view.was_replaced(partition, definition.file_id(partition, bucket, k)):
        k += 1
    return definition.file_id(partition, bucket, k)


def _check_index(definition: Definition, view: FileSystemView) -> None:
    """Raises UnsupportedTableError when some groups have no bucket number: their rows may be in a bucket's group as well."""
    others = [group for group in view.groups() if not _has_bucket(group)]
    if not others:
        return
    instants = sorted({time for group in others for time in (*group.bases, *(log.instant for log in group.logs.values()))})
    raise UnsupportedTableError(
        f"another program wrote without the bucket index: {len(others)} file groups have no bucket number, such as "
        f"{others[0].file_id} in {others[0].partition!r}, and may hold keys that are in others too; "
        f"their instants are {', '.join(instants)}",
        fix=how_to_undo(definition.buckets),
    )


def how_to_undo(buckets: int) -> str:
    """What to do about rows that lie in no bucket's file group, or in a wrong one."""
    return (
        "Delete no file: they are committed. Undo these instants with that program, the newest first (Spark: call "
        "rollback_to_instant), then adopt again; or restore the table to a savepoint, or load its rows into a new one. Other "
        f"programs have to write with hoodie.index.type=BUCKET and hoodie.bucket.index.num.buckets={buckets}."
    )


def _has_bucket(group: FileGroup) -> bool:
    try:
        bucket_of(group.file_id)
    except CorruptFileError:
        return False
    return True
