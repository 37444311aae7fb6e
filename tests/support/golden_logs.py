"""Files of the tables that real Hudi wrote, read straight out of their zips."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator

import pyarrow as pa

from support.golden import GOLDEN


def golden_files(name: str) -> Iterator[tuple[str, pa.Buffer]]:
    """Path within the table, and content, of every file of ``GOLDEN/<name>.zip``, by path; ``name`` like ``spark/h120_…``."""
    with zipfile.ZipFile(GOLDEN / f"{name}.zip") as archive:
        for path in sorted(archive.namelist()):
            if not path.endswith("/"):
                yield path.partition("/")[2], pa.py_buffer(archive.read(path))


def golden_logs(name: str) -> list[tuple[str, pa.Buffer]]:
    """The log files among them."""
    return [(path, content) for path, content in golden_files(name) if ".log." in path]
