"""``import headgate`` costs next to nothing: its parts are imported when they are used."""

import subprocess
import sys

import pytest

import headgate

HEAVY = ("asyncio", "grpc", "pandas", "pyarrow")


def loaded_by(program: str) -> list[str]:
    """Which of the heavy packages a program of its own has loaded at its end."""
    ask = f"{program}\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_the_package_loads_neither_arrow_nor_grpc() -> None:
    assert loaded_by("import headgate") == []


def test_handling_an_error_loads_neither_arrow_nor_grpc() -> None:
    assert loaded_by("import headgate\nheadgate.RetryLater, headgate.errors.QuotaError") == []


@pytest.mark.slow
def test_connecting_loads_what_it_needs() -> None:
    assert {"asyncio", "grpc", "pyarrow"} <= set(loaded_by("import headgate\nheadgate.connect"))


def test_every_public_name_is_what_its_name_says() -> None:
    for name in headgate.__all__:
        assert getattr(headgate, name).__name__.rpartition(".")[2] == name or name == "Level"


def test_every_public_name_is_listed_before_it_was_used() -> None:
    ask = "import headgate\nassert set(headgate.__all__) <= set(dir(headgate))"
    assert loaded_by(ask) == []


def test_a_misspelt_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'headgate' has no attribute 'conect'"):
        _ = headgate.conect  # type: ignore[attr-defined]
