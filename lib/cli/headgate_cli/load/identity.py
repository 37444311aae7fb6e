"""What a load is recognized by: the file's name and content, and all that decides its rows."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from headgate_cli.reading.hive_folders import folder_values
from headgate_cli.reading.options import ReadOptions

_OF_A_LOAD = re.compile(r"([0-9a-f]{16})-[0-9a-f]{8}(?:-[0-9a-f]+)?")


@dataclass(frozen=True, slots=True)
class LoadIdentity:
    """``family``: what the channels of all loads of a file of this name begin with; ``content`` and ``way``: hashes of its bytes
    and of how they are read; ``again``: what tells a load that is wanted from the first one.
    """

    family: str
    content: str
    way: str
    again: str = ""

    @property
    def channel(self) -> str:
        """The name of the load's channel: the same for the same file, so that a second run resumes the first."""
        return f"{self.family}{self.content}-{self.way}" + (f"-{self.again}" if self.again else "")

    def content_of(self, channel: str) -> str:
        """The content that a channel was a load of; empty for a channel that is no load of a file of this name."""
        found = _OF_A_LOAD.fullmatch(channel.removeprefix(self.family)) if channel.startswith(self.family) else None
        return found[1] if found else ""

    def marker(self, channel: str) -> str:
        """The name of a channel that remembers that ``channel`` was given for this file, read in this way."""
        return f"{channel.encode()[:200].decode(errors='ignore')}:file:{self.content}-{self.way}"


def identify(path: Path, operation: str, reading: ReadOptions, kind: str = "", again: str = "") -> LoadIdentity:
    """``kind``: the file's format; ``again``: hex digits. Reading the file once more costs about a second a gigabyte.

    The whole content counts: a file that was edited is loaded as a new one, never taken for the one that was loaded.
    """
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    described = f"{path.name}\0{kind}\0{dict(folder_values(path)) or ''}\0{reading.identity()}"
    way = hashlib.sha256(described.encode()).hexdigest()
    shown = "".join(letter if letter.isascii() and letter.isprintable() else "_" for letter in path.name)
    return LoadIdentity(f"load:{operation}:{shown[-120:]}:", content[:16], way[:8], again[:16])


def state(path: Path) -> tuple[int, int]:
    """What differs when a program writes to the file while it is read: its size, and when it was written."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns
