"""The name of a file's channel: the same for the same file, read in the same way, so that a second run resumes the first."""

import hashlib
from pathlib import Path

from headgate_cli.reading.options import ReadOptions


def channel_name(path: Path, operation: str, reading: ReadOptions, kind: str = "", again: str = "") -> str:
    """A name from the file's name and content and from all that decides its rows; 1 to 255 printable bytes.

    The whole content counts: a file that was edited is loaded as a new one, never taken for the one that was loaded.
    ``kind``: the file's format; ``again``: what tells a load of the same file that is wanted from its first one. Reading the file
    once more costs about a second a gigabyte.
    """
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    described = f"{path.name}\0{operation}\0{kind}\0{reading.identity()}\0{content}{again}"
    identity = hashlib.sha256(described.encode()).hexdigest()[:16]
    shown = "".join(letter if letter.isascii() and letter.isprintable() else "_" for letter in path.name)
    return f"load:{operation}:{shown[-120:]}:{identity}"


def state(path: Path) -> tuple[int, int]:
    """What differs when a program writes to the file while it is read: its size, and when it was written."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns
