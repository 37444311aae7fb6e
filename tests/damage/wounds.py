"""Ways to damage a store: what disks, killed programs, careless people and forgers do to files. Drawn from a seed."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from headgate_tables.commitlog.slot import hash_of
from headgate_tables.hudi.log.block import BlockKind, read_blocks

FORGED = "forged"
OUTSIDE = "outside"
"""A folder beside the store, which nobody may touch."""
_HUGE = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x7f" + b"\xff" * 7, b"\x00\x00\x00\x7f", b"\xfe\xff\xff\xff\x0f")
_FORGED_VALUES: Sequence[Any] = (
    *(0, -1, 1 << 31, 1 << 63, 10**40, 1e308, True, None, "", "x" * 100_000, "\0", "\ud800", [], {}, [[[[]]]], {"": {}}),
    *(f"../../{OUTSIDE}/file", f"p/../../../{OUTSIDE}/file", "/etc/passwd", "file:///etc", ".hoodie/hoodie.properties"),
    *("99991231235959999", "20260101000000000", ".hoodie/timeline/../../../x", "p", "²", "a b", "%2e%2e/%2e%2e"),
)
KINDS: Sequence[tuple[str, str]] = (
    ("slot", r"\.headgate/slot/"),
    ("fold", r"\.headgate/fold/"),
    ("bound", r"\.headgate/bound/"),
    ("staged file", r"\.headgate/stage/"),
    ("catalog entry", r"^\.headgate/tables/"),
    ("properties", r"hoodie\.properties$"),
    ("history", r"timeline/history/.*\.parquet$"),
    ("history's manifest", r"timeline/history/"),
    ("plan", r"\.compaction\.requested$"),
    ("clean", r"\.clean(\.\w+)?$"),
    ("savepoint", r"\.savepoint(\.\w+)?$"),
    ("pending instant", r"timeline/.*\.(requested|inflight)$"),
    ("commit", r"timeline/.*commit$"),
    ("partition file", r"\.hoodie_partition_metadata$"),
    ("log file", r"\.log\."),
    ("base file", r"\.parquet$"),
)


def kind_of(path: str) -> str:
    """What a file of the store is, by its name."""
    return next((kind for kind, pattern in KINDS if re.search(pattern, path)), "other")


@dataclass(frozen=True, slots=True)
class Wound:
    """``how``, to which file of the store, of which kind. ``also``: a second file that it touched. ``block``: the kind of log
    block in whose content all bytes lie that are others now, None when there is none.
    """

    how: str
    path: str
    kind: str
    also: str = ""
    block: BlockKind | None = None


def hurt(store: Path, chance: Random, only: str | None = None) -> Wound:
    """Damages one file, or two that are swapped. Each kind of file is as likely as any other; ``only``: of this kind.

    Within a kind every file gets its turn, and so does every byte.
    """
    by_kind: dict[str, list[str]] = {}
    for file in sorted(store.rglob("*")):
        if file.is_file():
            path = str(file.relative_to(store))
            by_kind.setdefault(kind_of(path), []).append(path)
    kind = only if only in by_kind else chance.choice(sorted(by_kind))
    path = _drawn(store, by_kind[kind], chance)
    others = [other for other in by_kind[kind] if other != path] or [path]
    how = chance.choice([*BYTES, *BYTES, *_FILES, *((FORGED,) * 8 if kind in ("slot", "fold") else ())])
    if how == FORGED:
        path = max(by_kind[kind])  # the hash of any other stands in the one behind it
        _put(store / path, _forge((store / path).read_bytes(), chance))
        return Wound(how, path, kind)
    if how in BYTES:
        before = (store / path).read_bytes()
        content = BYTES[how](before, (store / chance.choice(others)).read_bytes(), chance)
        _put(store / path, content)
        return Wound(how, path, kind, block=hit_block(before, content) if kind == "log file" else None)
    other = chance.choice(others)
    _FILES[how](store / path, store / other, chance)
    return Wound(how, path, kind, other)


def _drawn(store: Path, paths: Sequence[str], chance: Random) -> str:
    if chance.random() < 0.5:
        return chance.choice(paths)
    return chance.choices(paths, [1 + (store / path).stat().st_size for path in paths])[0]


def hit_block(before: bytes, after: bytes) -> BlockKind | None:
    """The kind of the log block in whose content all bytes lie that are others now; None when there is none, or another size."""
    if len(before) != len(after) or before == after:
        return None
    changed = np.flatnonzero(np.frombuffer(before, np.uint8) != np.frombuffer(after, np.uint8))
    whole = pa.py_buffer(before)
    for block in read_blocks(whole, ""):
        start = block.content.address - whole.address
        if start <= changed[0] and changed[-1] < start + block.content.size:
            return block.kind
    return None


def _forge(content: bytes, chance: Random) -> bytes:
    """The same slot or fold, sealed as it should be, with another value in one place: a strange one, or one of another place."""
    whole = json.loads(content.partition(b"\n")[2])
    parent: Any = whole
    key: Any = chance.choice(list(parent))
    while chance.random() < 0.8 and isinstance(parent[key], dict | list) and parent[key]:
        parent = parent[key]
        key = chance.choice(list(parent)) if isinstance(parent, dict) else chance.randrange(len(parent))
    parent[key] = chance.choice(_FORGED_VALUES if chance.random() < 0.6 else list(_values(whole)))
    payload = json.dumps(whole).encode()
    return b"headgate-slot 1 %s\n%s" % (hash_of(payload).encode(), payload)


def _values(part: Any) -> Iterator[Any]:
    """All of a slot that have no parts: names and times that mean something, in another place."""
    if isinstance(part, dict | list):
        for each in part.values() if isinstance(part, dict) else part:
            yield from _values(each)
    else:
        yield part


def _put(file: Path, content: bytes) -> None:
    file.unlink()  # a copied store shares its files with the template
    file.write_bytes(content)


def _flip(content: bytes, _: bytes, chance: Random) -> bytes:
    flipped = bytearray(content)
    for _bit in range(chance.choice([1, 1, 1, 2, 8]) if content else 0):
        flipped[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(flipped)


def _span(content: bytes, chance: Random) -> tuple[int, int]:
    first = chance.randrange(len(content) + 1)
    return first, min(len(content), first + chance.choice([1, 4, 16, 64, 512, len(content)]))


def _zero(content: bytes, _: bytes, chance: Random) -> bytes:
    first, last = _span(content, chance)
    return content[:first] + bytes(last - first) + content[last:]


def _noise(content: bytes, _: bytes, chance: Random) -> bytes:
    first, last = _span(content, chance)
    return content[:first] + chance.randbytes(last - first) + content[last:]


def _number(content: bytes, _: bytes, chance: Random) -> bytes:
    """Where lengths and counts stand, most likely, since they are everywhere."""
    first, number = chance.randrange(len(content) + 1), chance.choice(_HUGE)
    return content[:first] + number + content[first + len(number) :]


def _cut(content: bytes, _: bytes, chance: Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _lose(content: bytes, _: bytes, chance: Random) -> bytes:
    first, last = _span(content, chance)
    return content[:first] + content[last:]


def _repeat(content: bytes, _: bytes, chance: Random) -> bytes:
    first, last = _span(content, chance)
    return content[:last] + content[first:]


def _splice(content: bytes, other: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    return content[:at] + other[chance.randrange(len(other) + 1) :]


def _insert(content: bytes, other: bytes, chance: Random) -> bytes:
    first, last = _span(other, chance)
    at = chance.randrange(len(content) + 1)
    return content[:at] + other[first:last] + content[at:]


BYTES: Mapping[str, Callable[[bytes, bytes, Random], bytes]] = {
    "bits flipped": _flip,
    "zeroed": _zero,
    "overwritten": _noise,
    "a huge number": _number,
    "cut short": _cut,
    "a part lost": _lose,
    "a part repeated": _repeat,
    "spliced with another": _splice,
    "a part of another inserted": _insert,
}


def _swap(file: Path, other: Path, _: Random) -> None:
    kept = file.with_name("kept-aside")
    file.rename(kept)
    if other != file:
        other.rename(file)
    kept.rename(other)


def _become(file: Path, other: Path, _: Random) -> None:
    content = other.read_bytes()
    _put(file, content)


def _delete(file: Path, _: Path, __: Random) -> None:
    file.unlink()


def _rename(file: Path, _: Path, chance: Random) -> None:
    """A digit or letter of the name is another."""
    name = list(file.name)
    at = chance.randrange(len(name))
    name[at] = chance.choice("0123456789abcxyz_-.")
    if "".join(name) not in (".", ".."):
        file.rename(file.with_name("".join(name)))


def _double(file: Path, _: Path, chance: Random) -> None:
    """Once more under a name that is a little different."""
    aside = file.with_name("kept-aside")
    shutil.copyfile(file, aside)
    _rename(file, file, chance)
    aside.replace(file)


def _folder(file: Path, _: Path, __: Random) -> None:
    file.unlink()
    file.mkdir()


def _pipe(file: Path, _: Path, __: Random) -> None:
    file.unlink()
    os.mkfifo(file)


def _link(file: Path, other: Path, chance: Random) -> None:
    file.unlink()
    file.symlink_to(chance.choice([str(file), "/etc/passwd", "/dev/zero", "/", "..", "nowhere"]))


_FILES: Mapping[str, Callable[[Path, Path, Random], None]] = {
    "swapped": _swap,
    "replaced by another": _become,
    "deleted": _delete,
    "renamed": _rename,
    "there twice": _double,
    "a folder now": _folder,
    "a pipe now": _pipe,
    "a link now": _link,
}
