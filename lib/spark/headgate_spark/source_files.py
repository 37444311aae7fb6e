"""Parquet files as tasks read them without Spark: their footers, which row groups a task gets, and the rows of these."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from headgate_tables.errors import CorruptFileError, MissingFileError
from headgate_tables.opening import PARQUET_ERRORS, open_folder, open_parquet
from headgate_tables.storage.address import scheme_of, service_of
from headgate_tables.system import System

_SCHEMES: Final = {"file": "", "s3a": "s3", "s3": "s3", "gs": "gs", "abfss": "abfss"}
"""Those of Spark that name what our stores name, and how these do."""
_BATCH_ROWS: Final = 65_536
_BATCH_BYTES: Final = 8 << 20
_BUFFER_BYTES: Final = 1 << 20
"""Of a column of a local file; of an object store all columns of a row group come at once, which takes far fewer requests."""


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Where a file is: the folder as our stores take it, and the file's name there."""

    folder: str
    name: str

    @classmethod
    def of(cls, address: str) -> FilePlace | None:
        """``address``: as Spark names a file, percent-encoded. None when our stores do not know such addresses."""
        scheme, colon, rest = address.partition(":")
        known = _SCHEMES.get(scheme) if colon else None
        if known is None:
            return None
        path = unquote(rest)
        folder, _, name = (path if known else "/" + path.lstrip("/")).rpartition("/")
        return cls(f"{known}:{folder}" if known else folder or "/", name)

    @property
    def address(self) -> str:
        """For messages."""
        return f"{self.folder.rstrip('/')}/{self.name}"

    def options_of(self, table: str, storage_options: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """Those of the table at the URL ``table``, if the file is in a store of the same service."""
        return storage_options if service_at(self.folder) is not None and service_at(self.folder) == service_at(table) else None

    def open(self, storage_options: Mapping[str, str] | None) -> tuple[int, pq.ParquetFile]:
        """Its bytes, and the file. Raises TablesError, FileNotFoundError and PARQUET_ERRORS."""
        source = open_folder(self.folder, storage_options, System.real().ids).open_input(self.name)
        buffer_size = 0 if service_at(self.folder) is not None else _BUFFER_BYTES
        return source.size(), open_parquet(source, buffer_size=buffer_size)


def service_at(url: str) -> object | None:
    """The service that has what is at this URL, None for this machine's files."""
    scheme = scheme_of(url.partition("://")[0]) if "://" in url else None
    return None if scheme is None else service_of(scheme)


@dataclass(frozen=True, slots=True)
class Group:
    """A row group. ``bytes``: its share of the file."""

    place: FilePlace
    number: int
    rows: int
    bytes: int


def groups_of(place: FilePlace, metadata: pq.FileMetaData, size: int) -> list[Group]:
    """The row groups of a file of ``size`` bytes."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    total = max(1, sum(group.total_byte_size for group in groups))
    return [Group(place, number, group.num_rows, size * group.total_byte_size // total) for number, group in enumerate(groups)]


def shares_of(groups: Sequence[Group], most_bytes: int) -> list[list[Group]]:
    """What each task reads: about ``most_bytes``, or one row group that is larger."""
    count = min(len(groups), -(-sum(group.bytes for group in groups) // max(1, most_bytes)) or 1)
    shares: list[list[Group]] = [[] for _ in range(count)]
    least = [(0, at) for at in range(count)]
    for group in sorted(groups, key=lambda group: group.bytes, reverse=True):
        size, at = heapq.heappop(least)
        shares[at].append(group)
        heapq.heappush(least, (size + group.bytes, at))
    return shares


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Reads row groups. ``schema``: the columns to read, in Spark's types; ``table``: the URL of the table that they go to."""

    schema: pa.Schema
    table: str
    storage_options: Mapping[str, str] | None

    def read(self, groups: Sequence[Group]) -> Iterator[pa.RecordBatch]:
        """Their rows, some MiB at a time. Raises CorruptFileError and MissingFileError, which name the file; errors of stores."""
        for place, of_file in groupby(sorted(groups, key=_order), key=lambda group: group.place):
            try:
                _, file = place.open(place.options_of(self.table, self.storage_options))
                with file:
                    for group in of_file:
                        yield from self._read(file, group)
            except FileNotFoundError as error:
                raise MissingFileError(
                    f"{place.address} is not there any more", fix="Load files that nobody deletes meanwhile."
                ) from error
            except PARQUET_ERRORS as error:
                raise _damaged(place, str(error)) from error

    def _read(self, file: pq.ParquetFile, group: Group) -> Iterator[pa.RecordBatch]:
        """One group in a call: Arrow keeps the bytes of all groups of a call."""
        if group.number >= file.num_row_groups or file.metadata.row_group(group.number).num_rows != group.rows:
            raise _damaged(group.place, "it changed while it was loaded")
        size = file.metadata.row_group(group.number).total_byte_size
        rows = min(_BATCH_ROWS, max(1, _BATCH_BYTES * group.rows // max(1, size)))
        left = group.rows
        for batch in file.iter_batches(rows, row_groups=[group.number], columns=self.schema.names, use_threads=False):
            left -= batch.num_rows
            yield batch.select(self.schema.names).cast(self.schema)
        if left:
            raise _damaged(group.place, f"{left} of its rows are not where its footer says")


def _order(group: Group) -> tuple[str, str, int]:
    return group.place.folder, group.place.name, group.number


def _damaged(place: FilePlace, why: str) -> CorruptFileError:
    return CorruptFileError(f"{place.address}: {why}", fix="Write the file again, or leave it out; nothing was loaded.")
