"""Another program that writes a table of ours: the library on a copy that knows nothing of the slots, copied back."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate_tables import hudi
from headgate_tables.system import System

OURS = (".hoodie", ".headgate")


@contextmanager
def other_program(path: Path, *, buckets: int = 2, roll_back: bool = False, system: System | None = None) -> Iterator[hudi.Table]:
    """What is done with the handle is in ``path`` when the block ends, as Hudi's own files alone. It computes other file group
    ids than we do, executes plans that it finds, and archives, cleans and restores what we wrote. ``system``: with its clock.
    """
    copy = path.parent / f"{path.name} of another program"
    found = hudi_files(path)
    shutil.copytree(path, copy)
    shutil.rmtree(copy.joinpath(*OURS), ignore_errors=True)
    with hudi.open_table(str(copy), system=system) as table:
        table.adopt(buckets=buckets, roll_back=roll_back)
        yield table
    shutil.rmtree(copy.joinpath(*OURS))
    bring_back(copy, path, found)
    shutil.rmtree(copy)


def bring_back(copy: Path, path: Path, found: set[Path]) -> None:
    """Does in ``path`` what was done in ``copy`` since ``found`` was there, not to our slots."""
    after = hudi_files(copy)
    for gone in found - after:
        (path / gone).unlink()
    for name in after:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(copy / name, path / name)


def hudi_files(path: Path) -> set[Path]:
    """Every file that is not ours alone, from the table's root."""
    found = {file.relative_to(path) for file in path.rglob("*") if file.is_file()}
    return {file for file in found if file.parts[:2] != OURS}
