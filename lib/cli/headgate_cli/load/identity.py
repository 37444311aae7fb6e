"""The name of a file's channel: the same file gives the same name, so that a second run resumes the first."""

import hashlib
from pathlib import Path

_HEAD_BYTES = 1 << 16


def channel_name(path: Path, operation: str) -> str:
    """A name from the file's name, size and first 64 KiB and from the operation; 1 to 255 printable bytes.

    Hashing the whole file would read hundreds of gigabytes twice. A file that grew, or was replaced by another size, gets another
    name; one edited after its first 64 KiB without a change of size needs ``--channel``.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    identity = hashlib.sha256(f"{path.name}\0{path.stat().st_size}\0{operation}\0".encode() + head).hexdigest()[:16]
    shown = "".join(letter if letter.isascii() and letter.isprintable() else "_" for letter in path.name)
    return f"load:{operation}:{shown[-120:]}:{identity}"
