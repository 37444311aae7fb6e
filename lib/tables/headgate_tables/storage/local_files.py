"""The system calls under ``LocalStore``: whole new files, syncs that are never repeated, folders, and what an errno means."""

import contextlib
import errno
import os
import shutil
from collections import deque
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

from headgate_tables.errors import (
    CorruptFileError,
    OptionError,
    StoreDeniedError,
    StoreFullError,
    StoreUnavailableError,
    SyncFailedError,
    TablesError,
    UnsafeStoreError,
)
from headgate_tables.storage.store import Buffers, Outcome

TEMP_PREFIX = ".tmp-"
"""Begins names that no listing shows: files that a killed process left behind, and that belong to nobody."""

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_ANSWER_LOST = (errno.EIO, errno.ETIMEDOUT, errno.ESTALE)  # a soft NFS mount gives up on a request that the server may have done
_MOST_PIECES = os.sysconf("SC_IOV_MAX")


def create_empty(path: str) -> Outcome:
    """Creates an empty file under its final name: it has no content that could be torn."""
    try:
        os.close(os.open(path, _NEW_FILE, 0o666))
    except FileExistsError:
        return Outcome.EXISTS
    return Outcome.CREATED


def write_new(path: str, content: Buffers, *, sync: bool) -> None:
    """Writes a file that is not there yet and removes it when that fails. Raises FileExistsError, OSError, SyncFailedError."""
    descriptor = os.open(path, _NEW_FILE, 0o666)
    try:
        try:
            _write_all(descriptor, content)
            if sync:
                sync_open(descriptor, path)
        finally:
            os.close(descriptor)
    except BaseException:
        # On a disk that fails, the removal may fail too; the first error is the one to report.
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise


def _write_all(descriptor: int, content: Buffers) -> None:
    pending = deque(memoryview(piece).cast("B") for piece in content if len(piece))
    while pending:
        written = os.writev(descriptor, list(islice(pending, _MOST_PIECES)))
        while written:
            piece = pending.popleft()
            if written < len(piece):
                pending.appendleft(piece[written:])
            written -= min(written, len(piece))


def link_new(source: str, target: str) -> Outcome:
    """Gives a file a second name, create-only. Raises UnsafeStoreError where the file system has no hard links."""
    try:
        os.link(source, target)
    except FileExistsError:
        return Outcome.EXISTS
    except OSError as error:
        if _has_no_links(error, target):
            raise UnsafeStoreError(
                f"{target}: the file system has no hard links ({error.strerror}), so creation cannot be exclusive",
                fix="Put the table on a file system with hard links (ext4, XFS, Btrfs, NFS) or into an object store.",
            ) from error
        raise
    return Outcome.CREATED


def _has_no_links(error: OSError, target: str) -> bool:
    """EPERM means that, but also an immutable folder, where nothing can be written in another way either."""
    no_permission = error.errno == errno.EPERM and os.access(os.path.dirname(target), os.W_OK)
    return no_permission or error.errno in (errno.EOPNOTSUPP, errno.ENOSYS)


def publish(temp: str, target: str) -> Outcome:
    """Gives a finished temporary file its final name, create-only, and takes the temporary name away.

    An OSError means that the name was not given; where that is not certain, the outcome is UNKNOWN (rule C4).
    """
    try:
        outcome = link_new(temp, target)
        # NFS may repeat a link whose answer was lost and then report EEXIST for our own success.
        if outcome is Outcome.EXISTS and os.stat(temp).st_nlink == 2:
            return Outcome.CREATED
        return outcome
    except OSError as error:
        if error.errno in _ANSWER_LOST:
            return Outcome.UNKNOWN
        raise
    finally:
        # The outcome is what counts: a temporary name that stays is in no listing.
        with contextlib.suppress(OSError):
            os.unlink(temp)


def sync_open(descriptor: int, path: str) -> None:
    """Makes the content written through a descriptor durable. Raises SyncFailedError."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Never tried again: the kernel has dropped the pages, and a second fsync would succeed without them (hazard H14).
        raise SyncFailedError(
            f"fsync of {path} failed: {error.strerror}",
            fix="Check the disk and the kernel's log, then open the table again; what was returned as committed is on disk.",
        ) from error


def sync_file(path: str) -> None:
    """Makes a file's content durable. Raises SyncFailedError, OSError."""
    _open_and_sync(path, os.O_RDONLY | os.O_CLOEXEC)


def sync_folder(path: str) -> None:
    """Makes a folder's list of names durable. Raises SyncFailedError, OSError."""
    _open_and_sync(path, _FOLDER)


def _open_and_sync(path: str, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        sync_open(descriptor, path)
    finally:
        os.close(descriptor)


def make_folder(path: str, given: Collection[str] = ()) -> None:
    """Makes a folder and those above it, each durable at once: a process that fills it later cannot know that it was new.

    ``given``: folders that are not made. Raises FileNotFoundError when one of them would have to be.
    """
    if path in given:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    parent = os.path.dirname(path)
    try:
        os.mkdir(path)
    except FileExistsError:
        pass  # another process has just made it, and may not have synced it yet, or may have failed to
    except FileNotFoundError:
        make_folder(parent, given)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
    sync_folder(parent)


def unlink_if_there(path: str) -> None:
    """Deletes a file; one that is missing is a success."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(path)


def remove_tree(folder: str) -> None:
    """Removes a folder with all below it, if it is there."""
    while os.path.isdir(folder):
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            continue  # another process deletes in it too


def remove_if_empty(folder: str) -> None:
    """Deletes a folder that holds nothing; any other, and one that is missing, stays as it is."""
    try:
        os.rmdir(folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR):
            raise


def size_of(entry: "os.DirEntry[str] | Path") -> int:
    """A file that was deleted since its folder was listed counts as empty, as any name does that is gone before it is read."""
    try:
        return entry.stat().st_size
    except FileNotFoundError:
        return 0


@contextlib.contextmanager
def errors_of_reads(path: str) -> Iterator[None]:
    """Turns an OSError into FileNotFoundError when ``path`` is no file, else into an error of the library."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
    except OSError as error:
        raise _store_error(error, path) from error


@contextlib.contextmanager
def errors_of_writes(path: str) -> Iterator[None]:
    """Turns every OSError but FileExistsError into an error of the library."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise _store_error(error, path) from error


def _store_error(error: OSError, path: str) -> TablesError:
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFullError(f"{path}: {reason}", fix="Free space or raise the quota, then make the same call again.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreDeniedError(f"{path}: {reason}", fix="Give this process's user read and write access to the table's folder.")
    if error.errno == errno.ELOOP:
        return CorruptFileError(
            f"{path}: {reason}", fix="A table's folder has no links in it: remove it, and put the file itself there."
        )
    if error.errno == errno.ENOTDIR:
        return OptionError(
            f"{path}: {reason}", fix="A file stands where a folder of the table should be; choose another place, or move it away."
        )
    if error.errno == errno.ENAMETOOLONG:
        return OptionError(f"{path}: {reason}", fix="Use a shorter table path or shorter partition values.")
    return StoreUnavailableError(
        f"{path}: {reason}", fix="Check that the disk is mounted and sound, then make the same call again."
    )
