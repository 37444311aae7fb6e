"""Commands are imported when they are called; what lists them agrees with them, and imports none."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from headgate_cli.lazy_group import LazyGroup, Place
from headgate_cli.main import headgate

HEAVY = ("asyncio", "cryptography", "google.protobuf", "grpc", "pandas", "pyarrow", "pyspark", "rich.console")


def _places(group: LazyGroup, path: str = "headgate") -> Iterator[tuple[str, Place]]:
    for name, place in group.places.items():
        yield f"{path} {name}", place
        command = place.load()
        if isinstance(command, LazyGroup):
            yield from _places(command, f"{path} {name}")


def _loaded_by(*arguments: str) -> set[str]:
    """Which heavy packages a process of its own has loaded when that command line has ended."""
    ask = (
        "import sys\nfrom headgate_cli.main import run\n"
        f"run({list(arguments)!r})\nprint('loaded', *[name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_lists_say_of_each_command_what_it_says_of_itself() -> None:
    assert isinstance(headgate, LazyGroup)
    found = dict(_places(headgate))
    assert len(found) > 35
    assert {path: place.about for path, place in found.items()} == {
        path: place.load().get_short_help_str(limit=200) for path, place in found.items()
    }


def test_every_command_has_the_name_under_which_it_is_listed() -> None:
    assert isinstance(headgate, LazyGroup)
    assert [path for path, place in _places(headgate) if place.load().name != path.rpartition(" ")[2]] == []


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["table", "--help"], ["nonsense"]], ids=" ".join)
def test_help_and_mistakes_import_no_heavy_package(arguments: list[str]) -> None:
    assert _loaded_by(*arguments) <= {"google.protobuf"}


@pytest.mark.slow
def test_help_of_a_command_imports_what_that_command_needs_alone() -> None:
    assert not _loaded_by("dev", "--help") & {"grpc", "pandas", "pyarrow", "pyspark"}
    assert not _loaded_by("table", "scan", "--help") & {"grpc", "pandas", "pyspark"}
