"""`./task`, where nothing but the environment is there."""

import os
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_WITHOUT_JAVA = {**os.environ, "JAVA_HOME": "/nowhere"}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["interop --help", "spark -h", "demo --spark --help", "bench ingest --help"])
def test_help_is_shown_before_anything_is_looked_for(command: str) -> None:
    done = subprocess.run(["./task", *command.split()], cwd=_ROOT, env=_WITHOUT_JAVA, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")


@pytest.mark.slow
def test_spark_without_java_ends_with_what_to_install() -> None:
    done = subprocess.run(["./task", "spark"], cwd=_ROOT, env=_WITHOUT_JAVA, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no Java found; install 17" in done.stderr
