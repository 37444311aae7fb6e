"""Local disks and NFS: create-only by temporary file and hard link, durable by fsync.

No descriptor of a folder is kept: path revocation (rule W2) would not reach through it.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import ClassVar

import pyarrow as pa

from headgate_tables.errors import RetryLater, TableGoneError
from headgate_tables.storage.inside import Inside
from headgate_tables.storage.local_files import (
    TEMP_PREFIX,
    create_empty,
    errors_of_reads,
    errors_of_writes,
    link_new,
    make_folder,
    publish,
    remove_if_empty,
    remove_tree,
    size_of,
    sync_file,
    sync_folder,
    unlink_if_there,
    write_new,
)
from headgate_tables.storage.paths import folder_of
from headgate_tables.storage.spool import LocalSpool, local_spool
from headgate_tables.storage.store import Buffers, FolderListing, Outcome
from headgate_tables.storage.workers import Workers
from headgate_tables.system import Ids

_PARALLEL_FILES = 8


class LocalStore:
    """A folder of this machine; ``root`` is an absolute path, and is made when the first file is.

    ``anchor``: a folder in it that exists as long as the table does. With an anchor, neither of the two is made here, nor any
    folder while one of them is missing: a write then raises TableGoneError, so that a table moved away can be moved back.
    """

    stages: ClassVar[bool] = True

    def __init__(self, root: str, ids: Ids, *, anchor: str = "") -> None:
        self._root = root.rstrip("/")
        self._given = (self._root, f"{self._root}/{anchor}") if anchor else ()
        self._inside = Inside(self._root)
        self._at = self._inside.at
        self._ids = ids
        self._workers = Workers(_PARALLEL_FILES)
        self.url: str = PurePosixPath(root).as_uri()

    def get(self, path: str) -> pa.Buffer:
        # Plain reads: a mapped file would answer a disk error with SIGBUS, and is not faster.
        full = self._at(path)
        with errors_of_reads(full):
            descriptor = self._inside.open(full)
            try:
                size = os.fstat(descriptor).st_size
                data = os.read(descriptor, size)
                while len(data) < size and (more := os.read(descriptor, size - len(data))):
                    data += more  # one read returns at most 2 GiB
            finally:
                os.close(descriptor)
        return pa.py_buffer(data)

    def open_input(self, path: str) -> pa.NativeFile:
        full = self._at(path)
        with errors_of_reads(full):
            descriptor = self._inside.open(full)
            try:
                return pa.OSFile(self._inside.again(descriptor, full), "rb")
            finally:
                os.close(descriptor)

    def size(self, path: str) -> int | None:
        found = self._stat(path)
        return found.st_size if found and stat.S_ISREG(found.st_mode) else None

    def version(self, path: str) -> str | None:
        found = self._stat(path)
        return f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}" if found else None

    def list_folder(self, folder: str, *, after: str | None = None, sizes: bool = False) -> FolderListing:
        files, folders, found = list[str](), list[str](), dict[str, int]()
        full = self._at(folder)
        try:
            with errors_of_reads(full), self._inside.folder(full) as opened:
                if after is not None:
                    # What is new in a long folder: names first, and a look at only those that count.
                    newer = [name for name in os.listdir(opened) if name > after]
                    folders = [name for name in newer if os.path.isdir(f"{full}/{name}")]
                    files = [name for name in newer if name not in folders and not name.startswith(TEMP_PREFIX)]
                    return FolderListing(files, folders, {name: size_of(Path(full, name)) for name in files if sizes})
                with os.scandir(opened) as entries:
                    for entry in entries:
                        if entry.is_dir():
                            folders.append(entry.name)
                        elif not entry.name.startswith(TEMP_PREFIX):
                            files.append(entry.name)
                            found |= {entry.name: size_of(entry)} if sizes else {}
        except FileNotFoundError:
            return FolderListing([], [])
        return FolderListing(files, folders, found)

    def create(self, path: str, content: Buffers, *, durable: bool) -> Outcome:
        folders = self._checked_folders([path])
        outcome = self._create(path, content, durable)
        return outcome if not durable or self._synced(folders) else Outcome.UNKNOWN

    def create_all(self, files: Sequence[tuple[str, Buffers]], *, durable: bool) -> list[Outcome]:
        folders = self._checked_folders(path for path, _ in files)
        outcomes = self._workers.map(lambda file: self._create(file[0], file[1], durable), files)
        return [Outcome.UNKNOWN for _ in files] if durable and not self._synced(folders) else outcomes

    def stage(self, files: Sequence[tuple[str, Buffers]]) -> None:
        folders = self._checked_folders(path for path, _ in files)
        self._workers.map(lambda file: self._stage(file[0], file[1]), files)
        self._sync_folders(folders)

    @contextlib.contextmanager
    def spool(self, path: str, staged: str) -> Iterator[LocalSpool]:
        target, folder = self._at(path), folder_of(path)
        full = self._at(staged or f"{folder}/{TEMP_PREFIX}{self._ids.token()}".lstrip("/"))
        steps = (lambda: self._make_folder(os.path.dirname(target)), lambda: self._sync_folder(folder))
        with contextlib.ExitStack() as open_file:
            with errors_of_writes(full):
                for place in (os.path.dirname(full), os.path.dirname(target)):
                    self._inside.check_folder(place)
                try:
                    opened = open_file.enter_context(local_spool(full, target, *steps))
                except FileNotFoundError:
                    self._make_folder(os.path.dirname(full))
                    opened = open_file.enter_context(local_spool(full, target, *steps))
            yield opened

    def replace(self, path: str, content: Buffers) -> None:
        target = self._at(path)
        folder, _, name = target.rpartition("/")
        with errors_of_writes(target):
            self._inside.check_folder(folder)
            temp = self._write_temp(folder, content, sync=True)
            try:
                # Hadoop's checksum of the old bytes goes first: Hadoop reads a file without one, but not beside a wrong one.
                unlink_if_there(f"{folder}/.{name}.crc")
                os.rename(temp, target)
            finally:
                unlink_if_there(temp)
            sync_folder(folder)

    def link_all(self, names: Iterable[tuple[str, str]]) -> list[Outcome | None]:
        checked: set[str] = set()
        return [self._link(self._at(source), self._at(target), checked) for source, target in names]

    def copy(self, source: str, path: str) -> None:
        if self._link(self._at(source), self._at(path), set()) is None:
            raise FileNotFoundError(source)
        self._sync_folder(folder_of(path))

    def sync(self, paths: Iterable[str], folders: Iterable[str]) -> None:
        self._workers.map(self._sync_file, list(paths))
        self._sync_folders(folders)

    def delete(self, paths: Iterable[str]) -> None:
        checked: set[str] = set()
        for path in paths:
            full = self._at(path)
            with errors_of_writes(full):
                self._check_once(os.path.dirname(full), checked)
                unlink_if_there(full)

    def delete_folder(self, folder: str) -> None:
        full = self._at(folder)
        with errors_of_writes(full):
            self._inside.check_folder(os.path.dirname(full))
            remove_tree(full)

    def delete_empty(self, folder: str) -> None:
        with errors_of_writes(full := self._at(folder)):
            self._inside.check_folder(os.path.dirname(full))
            remove_if_empty(full)

    def rename_folder(self, source: str, target: str) -> None:
        old, new = self._at(source), self._at(target)
        with errors_of_writes(new):
            self._inside.check_folder(os.path.dirname(old))
            if os.path.isdir(old):
                if not os.path.isdir(folder := os.path.dirname(new)):
                    self._make_folder(folder)
                with contextlib.suppress(FileNotFoundError):  # another process renamed it first
                    os.rename(old, new)

    def _checked_folders(self, paths: Iterable[str]) -> set[str]:
        """The folders of new files, each looked at once: a commit may write hundreds of small files into a few of them."""
        folders = {folder_of(path) for path in paths}
        for folder in folders:
            full = self._at(folder)
            with errors_of_writes(full):
                self._inside.check_folder(full)
        return folders

    def _check_once(self, full: str, checked: set[str]) -> None:
        if full not in checked:
            self._inside.check_folder(full)
            checked.add(full)

    def _link(self, old: str, new: str, checked: set[str]) -> Outcome | None:
        with errors_of_writes(new):
            self._check_once(os.path.dirname(new), checked)
            self._check_once(os.path.dirname(old), checked)
            try:
                return link_new(old, new)
            except FileNotFoundError:
                if not os.path.exists(old):
                    return None
                self._make_folder(os.path.dirname(new))
                return link_new(old, new)

    def _stat(self, path: str) -> os.stat_result | None:
        full = self._at(path)
        try:
            with errors_of_reads(full):
                return os.stat(full)
        except FileNotFoundError:
            return None

    def _create(self, path: str, content: Buffers, durable: bool) -> Outcome:
        """``create`` without the folder's sync, which an existing file needs too: its creator may not have synced it yet."""
        target = self._at(path)
        folder = os.path.dirname(target)
        with errors_of_writes(target):
            if durable or any(map(len, content)):
                return publish(self._write_temp(folder, content, sync=durable), target)
            try:
                return create_empty(target)
            except FileNotFoundError:
                self._make_folder(folder)
                return create_empty(target)

    def _write_temp(self, folder: str, content: Buffers, *, sync: bool) -> str:
        temp = f"{folder}/{TEMP_PREFIX}{self._ids.token()}"
        self._write_in_folder(temp, content, sync=sync)
        return temp

    def _stage(self, path: str, content: Buffers) -> None:
        full = self._at(path)
        with errors_of_writes(full):
            self._write_in_folder(full, content, sync=True)

    def _write_in_folder(self, full: str, content: Buffers, *, sync: bool) -> None:
        try:
            write_new(full, content, sync=sync)
        except FileNotFoundError:
            self._make_folder(os.path.dirname(full))
            write_new(full, content, sync=sync)

    def _make_folder(self, folder: str) -> None:
        self._check_given()
        make_folder(folder, self._given)

    def _check_given(self) -> None:
        for folder in self._given:
            if not os.path.isdir(folder):
                raise TableGoneError(
                    f"{self._root} holds no table any more: {folder} is gone",
                    fix="Move the table's folder back, or mount its disk. Nothing is made in its place until then.",
                )

    def _sync_file(self, path: str) -> None:
        full = self._at(path)
        try:
            with errors_of_reads(full):
                sync_file(full)
        except FileNotFoundError:
            self._check_given()
            raise

    def _sync_folders(self, folders: Iterable[str]) -> None:
        self._workers.map(self._sync_folder, list(folders))

    def _sync_folder(self, folder: str) -> None:
        full = self._at(folder)
        with errors_of_writes(full):
            sync_folder(full)

    def _synced(self, folders: Iterable[str]) -> bool:
        """False when a folder could not be opened. Its files exist already, so no error may claim that nothing was done."""
        try:
            self._sync_folders(folders)
        except RetryLater:
            return False
        return True
