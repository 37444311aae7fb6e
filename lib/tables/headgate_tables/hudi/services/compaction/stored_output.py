"""The counts that a finished operation stores in its output, for attempts that find it finished (rules W4, FI5).

They are in the base file's footer, with a digest of what was merged: so an existing name is known to hold this very
operation's output, and size and checksum are those of the stored bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Generic, TypeVar

import pyarrow as pa

from headgate_tables.commitlog.records import DataFile
from headgate_tables.errors import CorruptFileError
from headgate_tables.face.operation import Operation, OperationResult
from headgate_tables.hudi.log.reader import PARQUET_ERRORS, open_parquet
from headgate_tables.hudi.parquet_checks import check_counts
from headgate_tables.storage.store import Store

COUNTS_KEY = "headgate.compaction"
_READ_BYTES = 8 * 1024 * 1024
_Content = TypeVar("_Content")


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of ``OperationResult``."""

    rows: int
    inserts: int
    updates: int
    deletes: int
    log_rows: int
    log_blocks: int

    def compacted(self, operation: Operation, file: DataFile, log: DataFile | None = None) -> OperationResult:
        """The finished operation."""
        return OperationResult(operation, file, **asdict(self), log=log)

    def footer(self, operation: Operation) -> dict[str, str]:
        """The footer keys of the file."""
        return {COUNTS_KEY: json.dumps({**asdict(self), "inputs": _digest(operation)}, sort_keys=True)}


def stored_output(store: Store, operation: Operation) -> OperationResult | None:
    """The finished operation, from the file under its name; None when there is none. Reads the file once, for its checksum.

    Raises CorruptFileError when the name holds something other than this operation's output.
    """
    path = operation.path

    def read(source: pa.NativeFile) -> Counts:
        try:
            content, rows = footer_value(source, path, COUNTS_KEY)
            stored = json.loads(content)
            inputs = stored.pop("inputs")
            counts = Counts(**stored)
        except (*PARQUET_ERRORS, ValueError, KeyError, TypeError) as error:
            raise taken(path, f"it is not the output of a compaction ({error!r})") from error
        if inputs != _digest(operation) or counts.rows != rows:
            raise taken(path, "it is the output of another operation")
        return counts

    found = stored_file(store, path, read)
    return found.content.compacted(operation, DataFile(path, found.size, found.sha256, "")) if found is not None else None


def _digest(operation: Operation) -> str:
    return hashlib.sha256(json.dumps(operation.encode()).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class StoredFile(Generic[_Content]):
    """A file that another run has made: what was read of it, and of the stored bytes size and SHA-256."""

    content: _Content
    size: int
    sha256: str


def stored_file(
    store: Store, path: str, read: Callable[[pa.NativeFile], _Content], *, in_memory: bool = False
) -> StoredFile[_Content] | None:
    """The file that has this name; None when there is none. ``read`` says what it is made of, and raises when it is another's.

    Reads the file once more, for its checksum (rule FI5). ``in_memory``: holds it whole, for a ``read`` that needs all of it.
    """
    if store.size(path) is None:
        return None
    with store.open_input(path) as opened:
        source = pa.BufferReader(opened.read_buffer()) if in_memory else opened
        content = read(source)
        source.seek(0)
        return StoredFile(content, *_digest_of(source))


def digest_of(store: Store, path: str) -> tuple[int, str] | None:
    """Size and SHA-256 of a stored file, which is read once; None when it is not there."""
    if store.size(path) is None:
        return None
    with store.open_input(path) as source:
        return _digest_of(source)


def _digest_of(source: pa.NativeFile) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    while piece := source.read(_READ_BYTES):
        digest.update(piece)
        size += len(piece)
    return size, digest.hexdigest()


def footer_value(source: pa.NativeFile, path: str, key: str) -> tuple[str, int]:
    """What a base file's footer has under the key, and how many rows the file has.

    Raises ``PARQUET_ERRORS``, KeyError, ValueError.
    """
    parquet = open_parquet(source)
    rows = sum(check_counts(parquet, path))
    return (parquet.metadata.metadata or {})[key.encode()].decode(), rows


def taken(path: str, how: str) -> CorruptFileError:
    """The error of a name that holds something else. ``how``: what is wrong with it."""
    return CorruptFileError(
        f"{path} is taken, and {how}",
        fix="Another program wrote that name, or the file is damaged. Move it away; the operation is then repeated.",
    )
