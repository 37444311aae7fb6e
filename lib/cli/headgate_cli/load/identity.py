"""The name of the channel through which a file is loaded: the same file gives the same name, so that a second run goes on."""

import hashlib
from pathlib import Path

_HEAD_BYTES = 1 << 16


def channel_name(path: Path, operation: str) -> str:
    """From the file's name, size and first 64 KiB, and from what is done with its rows; 1 to 255 bytes, printable.

    Not from all its bytes: a file of hundreds of gigabytes would be read twice. A file that grew or was made again under its
    name is another one; one that was only edited behind its first 64 KiB without changing its size needs ``--channel``.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    identity = hashlib.sha256(f"{path.name}\0{path.stat().st_size}\0{operation}\0".encode() + head).hexdigest()[:16]
    shown = "".join(letter if letter.isascii() and letter.isprintable() else "_" for letter in path.name)
    return f"load:{operation}:{shown[-120:]}:{identity}"
