"""Refuses data files that cannot be read here, by name: base files that are not Parquet, and names of unknown kinds.

A reader that skips them shows a table with rows missing. Timeline and file groups of such a table can still be listed.
"""

from collections.abc import Iterable

from headgate_tables.errors import UnsupportedTableError
from headgate_tables.hudi.log.names import PARQUET, parse_base_name
from headgate_tables.hudi.view import FileSlice, FileSystemView


def check_slices(slices: Iterable[FileSlice]) -> None:
    """Raises UnsupportedTableError for the first slice whose base file is not Parquet."""
    for part in slices:
        if part.base is not None and not part.base.endswith(f".{PARQUET}"):
            raise UnsupportedTableError(f"{part.path(part.base)} {unread(part.base)}", fix=FIX_FORMAT)


def check_unknown(files: Iterable[tuple[str, str]]) -> None:
    """Raises UnsupportedTableError for the first of these files (partition and name), see ``FileSystemView.unknown``."""
    for partition, name in files:
        raise UnsupportedTableError(f"{f'{partition}/{name}'.lstrip('/')} {unread(name)}", fix=FIX_NAME)


def check_all(view: FileSystemView) -> None:
    """Raises UnsupportedTableError unless every file of the table, in any slice, can be read."""
    check_unknown(view.unknown())
    for group in view.groups():
        check_slices(group.slices())


def unread(name: str) -> str:
    """Why a data file of this name, which is neither a log nor a Parquet base file, cannot be read."""
    base = parse_base_name(name)
    if base is None:
        return "carries a committed instant, but its name is of no known kind, so its rows may be missing"
    return f"is a base file in the format {base.format.upper()}; only Parquet is read here"


FIX_FORMAT = "Read the table with Spark or hudi-rs, or have its program write its rows into a new table with Parquet base files."
FIX_NAME = "Move it out of the table if it is a stray copy; else read the table with the program that wrote it."
