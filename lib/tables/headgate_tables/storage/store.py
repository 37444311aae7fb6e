"""The one door to files: a table's folder on a local disk or in an object store.

Paths are relative to the table's root, ``/`` between parts, never starting or ending with one. A path is
taken literally: ``a%3Db`` is that name, not ``a=b``.

Errors raised by every method: StoreUnavailableError, StoreDeniedError, StoreFullError; reads of a file that
is not there raise FileNotFoundError (the caller knows whether that is news or damage).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

Buffers = Sequence[bytes | memoryview | pa.Buffer]
"""A file's content in pieces, written one after the other (no copy into one)."""


class Outcome(enum.Enum):
    """What became of a create-only write. Unknown is a value, because the caller must act on it (rule C4)."""

    CREATED = "created"
    EXISTS = "exists"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class FolderListing:
    """One folder: names (last path part) of its files and of its folders, in no order; sizes of the files if asked for."""

    files: list[str]
    folders: list[str]
    sizes: dict[str, int] = field(default_factory=dict)

    def after(self, name: str) -> FolderListing:
        """What has a larger name."""
        return FolderListing(
            [each for each in self.files if each > name],
            [each for each in self.folders if each > name],
            {each: size for each, size in self.sizes.items() if each > name},
        )


class SpooledBytes(Protocol):
    """What was written to a spool; a file object for ``pyarrow.PythonFile``."""

    @property
    def closed(self) -> bool:
        """Always False: only the library ends a spool."""

    def write(self, data: ReadableBuffer) -> int:
        """All of ``data``, which has the buffer protocol."""

    def close(self) -> None:
        """Ends writing."""

    @property
    def size(self) -> int:
        """Bytes so far."""

    @property
    def sha256(self) -> str:
        """Of the bytes so far, as hex digits."""


class Spool(Protocol):
    """A file that is being written; nobody sees it until ``create``."""

    @property
    def file(self) -> SpooledBytes:
        """The file object that takes the content."""

    def create(self) -> Outcome:
        """Gives the file its name as ``Store.create`` does, durable; at most once. Raises DeposedError when the stage of this
        process was revoked (rule W2), SyncFailedError.
        """


class Store(Protocol):
    """A table's root folder."""

    @property
    def url(self) -> str:
        """``file:///...``, or a prefix of a bucket as in ``address.FORMS``; without a trailing slash."""

    @property
    def stages(self) -> bool:
        """True when data files are first written to a stage folder and linked into place once their slot is won
        (local disks, rule W2); False when they are created under their final name (object stores, rule W3).
        """

    def get(self, path: str) -> pa.Buffer:
        """The whole file."""

    def open_input(self, path: str) -> pa.NativeFile:
        """Random access for columnar reads."""

    def size(self, path: str) -> int | None:
        """Bytes, or None when there is no such file."""

    def version(self, path: str) -> str | None:
        """A tag that changes when the file (or, on a local disk, the folder's list of names) changes;
        None when there is no such thing, or when a store cannot say so for a folder.

        Linux before 6.13 stamps a folder once per clock tick: two changes within 10 ms may leave it the same tag.
        """

    def list_folder(self, folder: str, *, after: str | None = None, sizes: bool = False) -> FolderListing:
        """The folder's direct children; those with names > ``after`` only (``""`` = the root). A missing folder is empty.

        ``sizes``: with the bytes of each file, which costs a local disk a look at each.
        """

    def create(self, path: str, content: Buffers, *, durable: bool) -> Outcome:
        """Creates the file with this content if there is none, atomically: nobody sees half of it.

        ``durable``: content and name survive a power cut before this returns (always so on an object store).
        Local: temp, fsync, link, fsync of the folder.
        Object stores: a conditional PUT with client retries off; a timeout or reset is UNKNOWN.
        Raises SyncFailedError when an fsync failed.
        """

    def create_all(self, files: Sequence[tuple[str, Buffers]], *, durable: bool) -> list[Outcome]:
        """``create`` for many files, in parallel, each folder synced once."""

    def stage(self, files: Sequence[tuple[str, Buffers]]) -> None:
        """Writes files under fresh names that nobody looks for until a slot names them, durable, in parallel, each
        folder synced once; needs no temp and link. Only where ``stages``.
        Raises SyncFailedError; FileExistsError for a taken name.
        """

    def spool(self, path: str, staged: str) -> AbstractContextManager[Spool]:
        """A file of any size that is to be created as ``path``. Its bytes wait as ``staged`` on a local disk, or under a
        temporary name beside ``path`` when that is ""; for an object store without a name, in this machine's temporary folder.
        When the context ends nothing of that is left. Raises FileExistsError when ``staged`` is there.
        """

    def replace(self, path: str, content: Buffers) -> None:
        """Atomically replaces a file that others rewrite too, or that a power cut left torn. All else is create-only."""

    def link_all(self, names: Iterable[tuple[str, str]]) -> list[Outcome | None]:
        """Gives staged files second names, create-only, not durable by itself: CREATED, EXISTS, or None for a file that is not
        there. Only where ``stages``.

        ``names``: the staged and the new one of each file, taken one by one, so that a caller can look before each link
        whether it still may.
        """

    def copy(self, source: str, path: str) -> None:
        """Gives a file of the table another name, durable: a link on a local disk, elsewhere a copy, which the store makes
        itself. Does nothing when the name is there. A missing source raises FileNotFoundError.
        """

    def sync(self, paths: Iterable[str], folders: Iterable[str]) -> None:
        """Makes files' contents and folders' names durable; nothing to do on an object store. Raises SyncFailedError."""

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes files; one that is missing is a success."""

    def delete_folder(self, folder: str) -> None:
        """Deletes a folder with all below it; missing is a success."""

    def delete_empty(self, folder: str) -> None:
        """Deletes a folder below the root that holds nothing; any other stays as it is. Nothing to do on an object store."""

    def rename_folder(self, source: str, target: str) -> None:
        """Renames a folder (rule W2's path revocation); missing is a success. Only where ``stages``."""
