"""deploy/docker/Dockerfile as a text: what a build would not show. Needs no builder."""

import json
import subprocess
import sys
import tomllib

import pytest

from headgate_runtime.environment import ENVIRONMENT
from support.image import DOCKERFILE, ROOT, instructions

FOUND = instructions(DOCKERFILE.read_text())


def arguments(word: str) -> list[str]:
    return [rest for found, rest in FOUND if found == word]


@pytest.mark.parametrize("word", ["RUN", "ENTRYPOINT", "CMD"])
def test_no_shell_is_needed(word: str) -> None:
    assert arguments(word)
    for rest in arguments(word):
        assert all(isinstance(part, str) for part in json.loads(rest)), rest


def test_both_stages_are_the_official_python_whose_version_is_an_argument() -> None:
    assert arguments("FROM") == ["python:${PYTHON}-slim AS build", "python:${PYTHON}-slim"]
    assert arguments("ARG")[0].startswith("PYTHON=3.")


def test_every_member_but_that_of_spark_is_built_and_installed() -> None:
    """Without PySpark, which the lock of the runtime leaves out, ``headgate_spark`` cannot be imported."""
    members = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["workspace"]["members"]
    folders = [path for member in members for path in ROOT.glob(member) if (path / "pyproject.toml").exists()]
    folders.remove(ROOT / "lib" / "spark")
    [wheels] = [json.loads(rest) for rest in arguments("RUN") if '"wheel"' in rest]
    assert {part for part in wheels if part.startswith("./")} == {f"./{path.relative_to(ROOT)}" for path in folders}
    [installed] = [json.loads(rest) for rest in arguments("RUN") if "--find-links" in rest]
    names = {tomllib.loads((path / "pyproject.toml").read_text())["project"]["name"] for path in folders}
    assert names == {part for part in installed if part.startswith("headgate")}


def test_packages_come_from_the_locks_with_their_hashes_and_nothing_is_resolved() -> None:
    installs = [json.loads(rest) for rest in arguments("RUN") if '"install"' in rest and "pip" in rest]
    from_an_index = [command for command in installs if "--no-index" not in command]
    assert {command[-1] for command in from_an_index} == {"requirements-build.lock", "requirements-runtime.lock"}
    assert all({"--require-hashes", "--no-deps"} <= {*command} for command in from_an_index)


def test_the_version_is_that_of_the_packages() -> None:
    version = tomllib.loads((ROOT / "lib/cli/pyproject.toml").read_text())["project"]["version"]
    assert f"VERSION={version}" in arguments("ARG")


def test_settings_of_malloc_are_those_for_which_a_service_would_start_itself_again() -> None:
    [line] = [rest for rest in arguments("ENV") if "MALLOC_ARENA_MAX" in rest]
    assert dict(pair.split("=") for pair in line.split()) == ENVIRONMENT


@pytest.mark.slow
def test_all_that_the_build_imports_can_be_imported_without_pyspark() -> None:
    """Of the environment here, which has more than the image's: the tests' own packages."""
    without = (
        "import importlib, runpy, sys\n"
        "sys.modules.update(dict.fromkeys(['pyspark', 'py4j', 'headgate_spark']))\n"
        "for name in runpy.run_path('deploy/docker/slim.py')['modules']():\n"
        "    importlib.import_module(name)\n"
        "print(len(sys.modules))\n"
    )
    ended = subprocess.run([sys.executable, "-c", without], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 500
