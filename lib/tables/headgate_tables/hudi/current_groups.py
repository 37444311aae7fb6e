"""Which file group is a bucket's own, where that is not the one that every writer computes (rule FI1). Pure."""

from collections.abc import Collection, Iterable

from headgate_tables.errors import UnsupportedTableError
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.bucket import bucket_of

Groups = dict[str, dict[int, str]]
"""File group ids by partition and bucket, as in ``Definition.groups``."""


def current_groups(definition: Definition, live: Iterable[tuple[str, str]], replaced: Collection[tuple[str, str]]) -> Groups:
    """The ``groups`` of a table with these ``live`` and ``replaced`` groups, each as partition and file id.

    Raises UnsupportedTableError for a group outside of the table's buckets, and for two live groups of one bucket.
    """
    groups = _copied(definition)
    seen: dict[tuple[str, int], str] = {}
    for partition, file_id in live:
        key = partition, bucket_of(file_id)
        buckets = definition.buckets_in(partition)
        if key[1] >= buckets:
            raise UnsupportedTableError(
                f"the file group {file_id} in {partition!r} is of bucket {key[1]}, "
                f"but a partition of the table has {buckets} buckets",
                fix="The other program counted buckets differently: load the table's rows into a new one.",
            )
        if key in seen:
            raise UnsupportedTableError(
                f"bucket {key[1]} of {partition!r} has two file groups, {seen[key]} and {file_id}",
                fix="Rows of one key may be in both: load the table's rows into a new table.",
            )
        seen[key] = file_id
        if definition.file_id(*key) != file_id:
            groups.setdefault(partition, {})[key[1]] = file_id
    for partition, file_id in replaced:
        bucket = bucket_of(file_id)
        if (partition, bucket) not in seen and definition.file_id(partition, bucket) == file_id:
            groups.setdefault(partition, {})[bucket] = _unused(definition, replaced, partition, bucket)
    return groups


def overwritten_groups(
    definition: Definition, instant: str, replaced: Iterable[tuple[str, str]], written: Iterable[tuple[str, str]]
) -> Groups:
    """The ``groups`` after an overwrite at ``instant``: each bucket that lost its group, or got one, has the one of the instant,
    also when it got no rows. Otherwise a writer would put its next rows into the group that was replaced, where nobody sees them.
    """
    groups = _copied(definition)
    for partition, file_id in (*replaced, *written):
        bucket = bucket_of(file_id)
        groups.setdefault(partition, {})[bucket] = overwriting_id(definition, partition, bucket, instant)
    return groups


def overwriting_id(definition: Definition, partition: str, bucket: int, instant: str) -> str:
    """The file group that an overwrite at ``instant`` begins: all runs of a task agree on it, and nothing had it before."""
    return definition.file_id(partition, bucket, int(instant))


def _copied(definition: Definition) -> Groups:
    return {partition: dict(each) for partition, each in definition.groups.items()}


def _unused(definition: Definition, replaced: Collection[tuple[str, str]], partition: str, bucket: int) -> str:
    """The next file id that was not replaced: a replaced one stays invisible."""
    k = 1
    while (partition, definition.file_id(partition, bucket, k)) in replaced:
        k += 1
    return definition.file_id(partition, bucket, k)
