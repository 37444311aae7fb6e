"""The file groups that another program left, by bucket: which ids writers have to know, and what cannot be written on."""

from headgate_tables.errors import CorruptFileError, UnsupportedTableError
from headgate_tables.hudi.bucket_rules import expressions_of
from headgate_tables.hudi.current_groups import Groups, current_groups
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.bucket import bucket_of
from headgate_tables.hudi.view import FileGroup, FileSystemView


def groups_by_bucket(definition: Definition, view: FileSystemView) -> Groups:
    """File groups whose ids are not those that writers would compute (rule FI1). Raises UnsupportedTableError."""
    _check_index(definition, view)
    return current_groups(definition, [(group.partition, group.file_id) for group in view.groups()], view.replaced())


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
        fix=how_to_undo(definition),
    )


def how_to_undo(definition: Definition) -> str:
    """What to do about rows that lie in no bucket's file group, or in a wrong one."""
    rules = expressions_of(definition)
    numbers = f"hoodie.bucket.index.num.buckets={definition.buckets}"
    numbers += f" and hoodie.bucket.index.partition.expressions={rules}" if rules else ""
    return (
        "Delete no file: they are committed. Undo these instants with that program, the newest first (Spark: call "
        "rollback_to_instant), then adopt again; or restore the table to a savepoint, or load its rows into a new one. Other "
        f"programs have to write with hoodie.index.type=BUCKET, {numbers}."
    )


def _has_bucket(group: FileGroup) -> bool:
    try:
        bucket_of(group.file_id)
    except CorruptFileError:
        return False
    return True
