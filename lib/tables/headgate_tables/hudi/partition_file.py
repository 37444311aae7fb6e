"""``.hoodie_partition_metadata``: the file by which Hudi's readers recognise a partition's folder.

Fact HF11 (Hudi: HoodiePartitionMetadata). Spark lists a folder as a partition when the file is there, and
finds the table from inside a partition by its depth. A partition may have the file as Parquet or ORC instead, under another name;
readers take the text first, so that ours beside it does no harm.
"""

from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.properties import parse

_NAME = ".hoodie_partition_metadata"
PARTITION_FILES = frozenset([_NAME, f"{_NAME}.parquet", f"{_NAME}.orc"])
"""Its names in all forms."""


def partition_file(partition: str) -> str:
    """The file's path, from the table's root."""
    return f"{partition}/{_NAME}".lstrip("/")


def encode_partition_file(partition: str, instant: str) -> bytes:
    """The file's content. ``instant``: of the first commit to the partition."""
    return f"#partition metadata\ncommitTime={instant}\npartitionDepth={_depth(partition)}\n".encode()


def is_usable(path: str, content: bytes) -> bool | None:
    """Whether a partition file serves readers, whichever program wrote it; None for any other file."""
    partition, _, name = path.rpartition("/")
    if name != _NAME:
        return None
    try:
        found = parse(content, path)
    except CorruptFileError:
        return False
    return bool(found.get("commitTime")) and found.get("partitionDepth") == str(_depth(partition))


def _depth(partition: str) -> int:
    return len(partition.split("/")) if partition else 0
