"""Names under which data files wait on a local disk until their slot is won (rule W2)."""

import hashlib
from typing import Final

_SAME_IN_ALL_PARTITIONS: Final = "-0000-0000-0000-000000000000-0"
"""The end of the file ids of writers without locks: a bucket has the same one in every partition, so that they agree on it
(test_a_table_of_flink_is_adopted_written_compacted_and_read_by_all)."""


def staged_path(stage: str, instant: str, partition: str, file_id: str, end: int | str) -> str:
    """Where a data file waits; "" where it is created in place (``stage`` ""). ``end``: the log version, 0 for a base file, or
    the attempt. Its name is the instant, by which a sweep knows what an instant left, then what makes it unique in it.

    Ids that are unique stand without their partition: processes of the version before look for that.
    """
    if not stage:
        return ""
    path = f"{stage}/{instant}_{file_id}_{end}"
    if not file_id.endswith(_SAME_IN_ALL_PARTITIONS):
        return path
    return f"{path}_{hashlib.sha256(partition.encode()).hexdigest()[:16]}"
