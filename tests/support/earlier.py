"""The project as it was before it said protocol versions, for processes that run beside today's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
UNVERSIONED = "85c39a1b"
"""A commit whose calls say no protocol version, which counts as 1. The promise of docs/operations.md ("Upgrade") begins with
version 2; this commit goes together with it all the same, but for batches and frames above 1 MiB."""
_MEMBERS = ("proto", "coordinator", "writer", "compactor", "lib/cli", "lib/client", "lib/runtime", "lib/tables", "tests", ".")


def import_path(folder: Path, commit: str = UNVERSIONED) -> str:
    """Unpacks the commit into ``folder``; returns the PYTHONPATH with which its programs run. Skips without the history."""
    archive = subprocess.run(["git", "archive", commit], cwd=_ROOT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"needs the commit {commit}, which this clone lacks: {archive.stderr.decode(errors='replace').strip()}")
    folder.mkdir()
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    return os.pathsep.join([*(str(folder / member) for member in _MEMBERS), *(path for path in sys.path if path)])
