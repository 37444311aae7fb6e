"""Folders that are named after a partition's value, as Hive, Spark and Hudi do."""

from typing import Final

DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""The folder of null."""
NO_FOLDERS: Final = frozenset({"", ".", "..", DEFAULT_PARTITION})
"""Values that no folder can be named after."""
MAX_FOLDER_BYTES: Final = 255
"""NAME_MAX of Linux file systems."""
