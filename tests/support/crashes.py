"""What a crash leaves: the table's folder as it is before every system call that changes it, or as a power cut then leaves it.

``kill -9`` leaves exactly what is there at that moment, so one run of the script, looked at before each call, gives what killing
it again and again would (test_crash_strace.py kills for real). After a power cut only what was synced is certain: contents
by a sync of the file, names by a sync of their folder.
"""

import contextlib
import multiprocessing
import os
import shutil
import stat
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import Any

from headgate_tables.system import SystemIds
from support import crash_script

CALLS = ("open", "write", "writev", "fsync", "link", "unlink", "mkdir", "rename", "rmdir")
"""Everything through which storage/local changes a disk."""

Tree = dict[str, bytes | None]
"""Path to content; None for a folder."""


@dataclass(frozen=True)
class Crash:
    """What was left before call ``at`` and what the script had said until then."""

    at: int
    tree: Tree
    said: tuple[str, ...]
    power_cut: bool = False


@dataclass
class Recording:
    """``kills``: one per state of the folder. ``cuts``: of what was not synced, contents are lost, or names, or new names."""

    calls: int = 0
    kills: list[Crash] = field(default_factory=list)
    cuts: list[Crash] = field(default_factory=list)


def processes() -> ProcessPoolExecutor:
    """As many as there are processors, each begun anew: nothing of this process's threads and locks is in them."""
    return ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn"))


def examine_all(pool: ProcessPoolExecutor, crashes: Sequence[Crash], folder: Path) -> list[str]:
    """What is wrong, of each of the crashes that left something wrong."""
    return [wrong for wrong in pool.map(partial(examine, folder=folder), crashes, chunksize=8) if wrong]


def record(root: Path) -> Recording:
    """Runs the script once in ``root``; syncs are noted, not done. For a process of its own: it changes ``os``."""
    recorder = _Recorder(root)
    with recorder.watching():
        crash_script.run(f"file://{root}", recorder.said.append)
    recorder.look()
    return recorder.recording


def examine(crash: Crash, folder: Path) -> str:
    """What is wrong with what the crash left, or ""."""
    place = folder / SystemIds().token()
    root = place / "table"
    place.mkdir()
    for path, content in crash.tree.items():
        target = root / path
        if content is None:
            target.mkdir()
        else:
            target.write_bytes(content)
    wrong = examine_folder(root, crash.said, power_cut=crash.power_cut)
    shutil.rmtree(place)
    return f"before call {crash.at}: {wrong}" if wrong else ""


def examine_folder(root: Path, said: Sequence[str], *, power_cut: bool = False) -> str:
    """The same for a table that a killed process left in ``root``. Nothing is synced: this process will not crash."""
    os.fsync = lambda descriptor: None  # type: ignore[assignment]
    try:
        crash_script.examine(f"file://{root}", said, read_first=not power_cut)
    except Exception:  # noqa: BLE001 - whatever it is, the test shows it
        return f"after {said.count('returned')} commits:\n{traceback.format_exc()}"
    return ""


class _Recorder:
    """Between two calls everything stands still: threads of the script take turns."""

    def __init__(self, root: Path) -> None:
        self.recording = Recording()
        self.said: list[str] = []
        self._root = root
        self._turn = threading.RLock()
        self._paths: dict[int, str] = {}
        self._kept: list[int] = []
        self._contents: dict[tuple[int, int, int], bytes] = {}
        self._synced: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._seen: set[object] = set()
        self._real = {name: getattr(os, name) for name in CALLS}

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        for name in CALLS:
            setattr(os, name, self._watched(name))
        try:
            yield
        finally:
            for name, real in self._real.items():
                setattr(os, name, real)
            for descriptor in self._kept:
                os.close(descriptor)

    def _watched(self, name: str) -> Callable[..., Any]:
        real = self._real[name]

        @wraps(real)
        def call(*arguments: Any, **named: Any) -> Any:
            with self._turn:
                self.recording.calls += 1
                creates = name == "open" and arguments[1] & os.O_CREAT
                if name != "open" or creates:
                    self.look()
                if name == "fsync":
                    return self._note_sync(arguments[0])
                result = real(*arguments, **named)
                if name == "open" and isinstance(arguments[0], str):
                    self._paths[result] = arguments[0]
                if creates:
                    # Kept open, so that the number of a deleted file is not given to another one.
                    self._kept.append(self._real["open"](arguments[0], os.O_RDONLY))
                return result

        return call

    def _note_sync(self, descriptor: int) -> None:
        path, found = self._paths[descriptor], os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            self._names[found.st_ino] = {name: os.stat(f"{path}/{name}").st_ino for name in os.listdir(path)}
        else:
            self._synced[found.st_ino] = self._content(path, found)

    def look(self) -> None:
        """Notes the folder as it is now and what power cuts could leave of it, unless that was seen before."""
        tree: Tree = {}
        inodes: dict[str, int] = {}
        self._walk("", tree, inodes)
        self._note(self.recording.kills, tree, power_cut=False)
        contents_lost = {path: content and self._synced.get(inodes[path], b"") for path, content in tree.items()}
        self._note(self.recording.cuts, contents_lost, power_cut=True)
        for deleted in (False, True):
            left: Tree = {}
            self._walk_synced("", inodes.get("", 0), inodes, tree, left, deleted=deleted)
            self._note(self.recording.cuts, left, power_cut=True)

    def _note(self, crashes: list[Crash], tree: Tree, *, power_cut: bool) -> None:
        state = frozenset((path, id(content)) for path, content in tree.items()), len(self.said), power_cut
        if state not in self._seen:
            self._seen.add(state)
            crashes.append(Crash(self.recording.calls, tree, tuple(self.said), power_cut))

    def _walk(self, path: str, tree: Tree, inodes: dict[str, int]) -> None:
        folder = self._root / path
        if not folder.exists():
            return
        tree[path], inodes[path] = None, folder.stat().st_ino
        for entry in os.scandir(folder):
            below = f"{path}/{entry.name}".lstrip("/")
            if entry.is_dir():
                self._walk(below, tree, inodes)
            else:
                found = entry.stat()
                tree[below], inodes[below] = self._content(entry.path, found), found.st_ino

    def _walk_synced(self, path: str, inode: int, inodes: dict[str, int], now: Tree, left: Tree, *, deleted: bool) -> None:
        """Only names that were synced. With ``deleted`` only such as are there still: deletes came to the disk, links did not."""
        left[path] = None
        synced = self._names.get(inode, {})
        folders = {number for other, number in inodes.items() if now[other] is None}
        for name, number in synced.items():
            below = f"{path}/{name}".lstrip("/")
            if deleted and number in folders:
                # A folder that was renamed has the old name or the new one, never none.
                below = next(other for other, found in inodes.items() if found == number)
            if deleted and inodes.get(below) != number:
                continue
            if number in folders or number in self._names:
                self._walk_synced(below, number, inodes, now, left, deleted=deleted)
            else:
                left[below] = self._synced.get(number, b"")

    def _content(self, path: str, found: os.stat_result) -> bytes:
        key = (found.st_ino, found.st_size, found.st_mtime_ns)
        if key not in self._contents:
            self._contents[key] = Path(path).read_bytes()
        return self._contents[key]
