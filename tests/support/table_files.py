"""The data files of a Hudi table on a local disk, found by walking the folders and by nothing of the library."""

from pathlib import Path


def data_files(path: Path) -> list[Path]:
    """Base and log files, sorted by path."""
    found = [file for file in path.rglob("*") if file.is_file() and ".hoodie" not in file.parts]
    return sorted(file for file in found if not file.name.startswith(".hoodie") and not file.name.endswith(".crc"))


def kind(file: Path) -> str:
    """``base`` or ``log``."""
    return "log" if file.name.startswith(".") else "base"


def instant_of(file: Path) -> str:
    """The instant in a file's name."""
    return file.name.split("_")[1].split(".")[0] if kind(file) == "log" else file.stem.split("_")[-1]
