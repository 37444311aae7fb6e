"""In CI a test that skips itself fails, so that nothing is left out unseen."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

_CONFTEST = Path(__file__).with_name("conftest.py")
_TESTS = {
    "test_kinds.py": """
        import pytest

        def test_passes():
            pass

        def test_skips_itself():
            pytest.skip("no such tool")

        @pytest.mark.skipif(True, reason="another machine")
        def test_is_marked():
            pass

        @pytest.fixture
        def absent():
            pytest.skip("no such server")

        def test_has_a_fixture_that_skips(absent):
            pass

        @pytest.mark.xfail(reason="a known defect", strict=True)
        def test_is_expected_to_fail():
            assert False
        """,
    "test_module.py": """
        import pytest

        pytest.importorskip("no_such_package")
        """,
}

LIMIT_S = 300.0
"""A run takes 3 s; with xdist its end was seen to take 15 s, and once more than 120 s, where other tests had the processors."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tests that skip in every way, and the project's own conftest.py."""
    (tmp_path / "conftest.py").write_text(_CONFTEST.read_text())
    for name, text in _TESTS.items():
        (tmp_path / name).write_text(textwrap.dedent(text))
    return tmp_path


def run(folder: Path, *options: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-rfEs", "--rootdir", str(folder), "-c", "/dev/null", *options, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    return done.returncode, done.stdout


def failed(told: str) -> set[str]:
    return {line.split()[1] for line in told.splitlines() if line.startswith(("FAILED ", "ERROR "))}


@pytest.mark.parametrize("options", [(), ("--numprocesses=1",)], ids=["in one process", "in a process of xdist"])
def test_with_no_skips_each_skipped_test_fails_and_says_why(folder: Path, options: tuple[str, ...]) -> None:
    code, told = run(folder, "--no-skips", "--continue-on-collection-errors", *options)
    assert code == 1, told
    kinds = {"test_skips_itself", "test_is_marked", "test_has_a_fixture_that_skips"}
    assert {name.rpartition("/")[2] for name in failed(told)} == {*(f"test_kinds.py::{kind}" for kind in kinds), "test_module.py"}
    for reason in ("no such tool", "another machine", "no such server", "no_such_package"):
        assert reason in told
    assert "1 passed, 1 xfailed" in told


def test_a_skipped_test_that_is_listed_is_only_shown(folder: Path) -> None:
    listed = {"test_kinds.py::": "a reason", "test_module.py": "another one"}
    with (folder / "conftest.py").open("a") as conftest:
        conftest.write(f"\nSKIPS |= {listed}\n")
    code, told = run(folder, "--no-skips")
    assert code == 0, told
    assert "SKIPPED" in told
    assert "1 passed, 4 skipped, 1 xfailed" in told


def test_without_the_option_a_test_may_skip_itself(folder: Path) -> None:
    code, told = run(folder)
    assert code == 0, told
    assert "1 passed, 4 skipped, 1 xfailed" in told
