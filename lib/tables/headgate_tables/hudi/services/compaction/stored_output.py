"""The counts that a finished operation stores in its output, for attempts that find it finished (rules W4, FI5).

They are in the base file's footer, with a digest of what was merged: so an existing name is known to hold this very
operation's output, and size and checksum are those of the stored bytes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

import pyarrow as pa

from headgate_tables.commitlog.records import DataFile
from headgate_tables.errors import CorruptFileError
from headgate_tables.face.operation import Operation, OperationResult
from headgate_tables.hudi.log.reader import PARQUET_ERRORS, open_parquet
from headgate_tables.hudi.parquet_checks import check_counts
from headgate_tables.storage.store import Store

COUNTS_KEY = "headgate.compaction"
_READ_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of ``OperationResult``."""

    rows: int
    inserts: int
    updates: int
    deletes: int
    log_rows: int
    log_blocks: int

    def compacted(self, operation: Operation, file: DataFile) -> OperationResult:
        """The finished operation."""
        return OperationResult(operation, file, **asdict(self))

    def footer(self, operation: Operation) -> dict[str, str]:
        """The footer keys of the file."""
        return {COUNTS_KEY: json.dumps({**asdict(self), "inputs": _digest(operation)}, sort_keys=True)}


def stored_output(store: Store, operation: Operation) -> OperationResult | None:
    """The finished operation, from the file under its name; None when there is none. Reads the file once, for its checksum.

    Raises CorruptFileError when the name holds something other than this operation's output.
    """
    path = operation.path
    if store.size(path) is None:
        return None
    with store.open_input(path) as source:
        try:
            file = open_parquet(source)
            rows = sum(check_counts(file, path))
            stored = json.loads((file.metadata.metadata or {})[COUNTS_KEY.encode()])
            inputs = stored.pop("inputs")
            counts = Counts(**stored)
        except (*PARQUET_ERRORS, ValueError, KeyError, TypeError) as error:
            raise _taken(path, f"it is not the output of a compaction ({error!r})") from error
        if inputs != _digest(operation) or counts.rows != rows:
            raise _taken(path, "it is the output of another operation")
        size, sha256 = size_and_digest(source)
    return counts.compacted(operation, DataFile(path, size, sha256, ""))


def _digest(operation: Operation) -> str:
    return hashlib.sha256(json.dumps(operation.encode()).encode()).hexdigest()


def size_and_digest(source: pa.NativeFile) -> tuple[int, str]:
    """Size and SHA-256 of all of the file."""
    digest = hashlib.sha256()
    source.seek(0)
    size = 0
    while piece := source.read(_READ_BYTES):
        digest.update(piece)
        size += len(piece)
    return size, digest.hexdigest()


def _taken(path: str, how: str) -> CorruptFileError:
    return CorruptFileError(
        f"{path} is taken, and {how}",
        fix="Another program wrote that name, or the file is damaged. Move it away; the operation is then repeated.",
    )
