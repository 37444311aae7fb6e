"""What a load is recognized by: the file's name and content, and all that decides its rows."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from headgate_cli.reading.hive_folders import folder_values
from headgate_cli.reading.options import ReadOptions

_NAME_BYTES = 200
_OF_A_LOAD = re.compile(r"([0-9a-f]{16})-[0-9a-f]{8}(?:-[0-9a-f]+)?")


_MARK_BITS = 40
_MARK = (1 << _MARK_BITS) - 1


@dataclass(frozen=True, slots=True)
class LoadIdentity:
    """``family``: what the channels of all loads of a file of this name begin with; ``content`` and ``way``: hashes of its bytes
    and of how they are read; ``again``: hex digits that tell a load that is wanted from the first one.
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

    def is_marked(self, offset: int) -> bool:
        """Whether a marker with this offset names this file, read in this way."""
        return offset & _MARK == self._mark()

    def mark(self, offset: int) -> int:
        """The next offset of a marker, above ``offset``, that names this file: a channel's offset only grows."""
        return ((offset >> _MARK_BITS) + 1 << _MARK_BITS) | self._mark()

    def _mark(self) -> int:
        return int.from_bytes(_hash(f"{self.content}-{self.way}")) & _MARK


def marker_of(channel: str) -> str:
    """The name of the channel that remembers of which file ``channel`` is: its offset is a hash, below a count."""
    name = channel.encode()
    short = channel if len(name) <= _NAME_BYTES else f"{name[:_NAME_BYTES].decode(errors='ignore')}~{_hash(channel).hex()[:16]}"
    return f"{short}:file"


def identify(path: Path, operation: str, reading: ReadOptions, kind: str = "") -> LoadIdentity:
    """``kind``: the file's format. Reading the file once more costs about a second a gigabyte.

    The whole content counts: a file that was edited is loaded as a new one, never taken for the one that was loaded.
    """
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    described = f"{path.name}\0{kind}\0{dict(folder_values(path)) or ''}\0{reading.identity()}"
    return LoadIdentity(f"load:{operation}:{_shown(path)}:", content[:16], _hash(described).hex()[:8])


def _shown(path: Path) -> str:
    """The file's name as a channel's name may have it, with a hash of what it cannot have: other letters, columns of folders."""
    shown = "".join(letter if letter.isascii() and letter.isprintable() else "_" for letter in path.name)[-120:]
    whole = "\0".join([path.name, *(f"{name}={value}" for name, value in folder_values(path).items())])
    return shown if shown == whole else f"{shown}~{_hash(whole).hex()[:8]}"


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogateescape")).digest()


def state(path: Path) -> tuple[int, int]:
    """What differs when a program writes to the file while it is read: its size, and when it was written."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns
