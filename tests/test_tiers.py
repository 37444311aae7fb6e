"""`./task test` is quick and has something of every package; `./task test --all` is everything, and CI runs that."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FAST = ["-m", "not slow"]
_ENVIRONMENT = ("proto", "coordinator", "writer", "compactor", "lib/cli", "lib/client", "lib/runtime", "lib/spark", "lib/tables")
_FETCHED = (
    "versitygw/versitygw",
    "helm/helm",
    "s3rver/node_modules/s3rver/bin/s3rver.js",
    "azurite/node_modules/azurite/dist/src/blob/main.js",
    "compose-spec/cmd",
)
"""Programs that `./task test` fetches where they are not there."""
_SAYS_ITS_ARGUMENTS = "#!/bin/sh\nprintf '%s\\n' \"$@\"\n"


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """`./task` as it is, in a folder whose environment is ready and whose Python says what it was called with."""
    members = [Path(member) / "pyproject.toml" for member in _ENVIRONMENT]
    locks = [Path("requirements-build.lock"), Path("requirements.lock")]
    for file in (*members, *locks, Path("task")):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    for program in (".venv/bin/python", *(f".cache/{name}" for name in _FETCHED)):
        (tmp_path / program).parent.mkdir(parents=True)
        (tmp_path / program).write_text(_SAYS_ITS_ARGUMENTS)
        (tmp_path / program).chmod(0o755)
    (tmp_path / ".venv/locks").write_text("\n".join([str(tmp_path), *(text(tmp_path / lock) for lock in locks)]) + "\n")
    (tmp_path / ".venv/members").write_text("\n".join(text(tmp_path / member) for member in members) + "\n")
    return tmp_path / "task"


def text(file: Path) -> str:
    return file.read_text().rstrip("\n")


def pytest_arguments(task: Path, *arguments: str) -> list[str]:
    """What `./task test ARGUMENTS` calls pytest with, behind what it says of processes."""
    done = subprocess.run([task, "test", *arguments], capture_output=True, text=True, check=True)
    assert done.stderr == "", "nothing is fetched for these tests"
    said = done.stdout.splitlines()
    return said[said.index("worksteal") + 1 :]


def test_without_a_name_the_fast_tests_run_and_filters_narrow_them(task: Path) -> None:
    assert pytest_arguments(task) == FAST
    assert pytest_arguments(task, "-k", "writer", "-x") == [*FAST, "-k", "writer", "-x"]


@pytest.mark.parametrize("named", ["tests", "tests/cluster", "./tests/cluster/test_overload.py", "tests/test_tiers.py::test_x"])
def test_of_files_that_are_named_all_tests_run(task: Path, named: str) -> None:
    assert pytest_arguments(task, "-x", named) == ["-x", named]


def test_all_means_that_no_test_is_left_out(task: Path) -> None:
    assert pytest_arguments(task, "--all", "-rfEs") == ["-rfEs"]


def test_ci_runs_all_tests_and_lets_none_skip_itself() -> None:
    [stage] = re.findall(r"^stage \S+ ./task test (.*)$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert {"--all", "--no-skips"} <= set(stage.split())
    assert "-m" not in stage.split()


@pytest.mark.slow
def test_every_folder_of_tests_has_fast_ones() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist", *FAST, "tests"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    fast = {Path(line.partition("::")[0]).parent for line in done.stdout.splitlines() if "::" in line}
    whole = {file.parent.relative_to(ROOT) for file in ROOT.glob("tests/**/test_*.py")}
    assert fast == whole - {Path("tests/interop"), Path("tests/spark"), Path("tests/spark_source")}
