"""The files of the archived timeline: ``<first>_<last>_<level>.parquet``, ``manifest_<N>``, ``_version_``
(Hudi: LSMTimeline, LSMTimelineWriter).
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from headgate_tables.arrow import Field, pc
from headgate_tables.commitlog.fields import Fields, UnfitError, list_of, number, text
from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.log.reader import PARQUET_ERRORS
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER
from headgate_tables.storage.store import Store

VERSION_FILE = "_version_"
_MANIFEST = re.compile(r"manifest_(\d+)")
_FILE = re.compile(r"(\d+)_(\d+)_(\d)\.parquet")
_AVRO_FIELDS = [
    *({"name": name, "type": ["null", {"type": "string", "avro.java.string": "String"}], "default": None} for name in (
        "instantTime", "completionTime", "action"
    )),
    *({"name": name, "type": ["null", "bytes"], "default": None} for name in ("metadata", "plan")),
    {"name": "version", "type": "int", "default": 1},
]  # fmt: skip
_AVRO = {
    "type": "record",
    "name": "HoodieLSMTimelineInstant",
    "namespace": "org.apache.hudi.avro.model",
    "fields": _AVRO_FIELDS,
}
_TEXTS: list[Field] = [pa.field(name, pa.string()) for name in ("instantTime", "completionTime", "action")]
_BYTES: list[Field] = [pa.field(name, pa.binary()) for name in ("metadata", "plan")]
SCHEMA = pa.schema([*_TEXTS, *_BYTES, pa.field("version", pa.int32(), nullable=False)])
"""HoodieLSMTimelineInstant."""
_FOOTER = {"parquet.avro.schema": json.dumps(_AVRO, separators=(",", ":")), "writer.model.name": "avro"}
_SHORT = ["instantTime", "completionTime", "action", "version"]
"""Columns with bounds in the footer; of the others, bounds would be as long as the metadata themselves."""


@dataclass(frozen=True, slots=True)
class Archived:
    """A completed instant that leaves the active timeline. ``action``: of its completed file. ``metadata``: that file's bytes.
    ``plan``: its requested file's bytes, None if that is empty.
    """

    instant: str
    completion: str
    action: str
    metadata: bytes | None
    plan: bytes | None


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """One Parquet file; its instants are neither before ``first`` nor after ``last``."""

    first: str
    last: str
    level: int
    size: int

    @property
    def name(self) -> str:
        """The name without folder."""
        return f"{self.first}_{self.last}_{self.level}.parquet"

    def may_hold(self, instants: Collection[str]) -> bool:
        """Whether its name allows it to hold one of the instants."""
        return any(self.first <= instant <= self.last for instant in instants)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What ``manifest_<number>`` lists; number 0 is that of a table without history."""

    number: int
    files: tuple[HistoryFile, ...]

    def encode(self) -> bytes:
        """The manifest's JSON as Hudi writes it."""
        return json.dumps({"files": [{"fileName": file.name, "fileLen": file.size} for file in self.files]}, indent=2).encode()


class HistoryFolder:
    """Reads one table's history. ``name``: the folder's, in that of the timeline. Raises CorruptFileError."""

    def __init__(self, store: Store, name: str) -> None:
        self.path = f"{TIMELINE_FOLDER}/{name}"
        self._store = store

    def at(self, name: str) -> str:
        """Path of a file, from the table's root."""
        return f"{self.path}/{name}"

    def names(self) -> list[str]:
        """Names of all files in the folder."""
        return self._store.list_folder(self.path).files

    def named(self, names: Collection[str]) -> Manifest:
        """The manifest that readers use: the one in ``_version_``; without that file, as in Hudi, the newest."""
        if VERSION_FILE in names:
            return self.manifest(self._version())
        return self.manifest(max(manifest_numbers(names), default=0))

    def readable(self, numbers: Iterable[int]) -> Iterator[Manifest]:
        """The manifests of these numbers, except unreadable ones: a program that does not create files atomically may have died
        while it wrote one, which no reader has used then.
        """
        for each in numbers:
            with contextlib.suppress(CorruptFileError):
                yield self.manifest(each)

    def manifest(self, number: int) -> Manifest:
        """The manifest of this number; 0 is empty."""
        if not number:
            return Manifest(0, ())
        path = self.at(f"manifest_{number}")
        try:
            entries = Fields(json.loads(self._store.get(path).to_pybytes())).required("files", _read_entries)
            return Manifest(number, tuple(entries))
        except (FileNotFoundError, ValueError, UnfitError) as error:
            _damaged(path, error)

    def read(self, name: str, columns: Sequence[str]) -> pa.Table:
        """These columns of one file."""
        path = self.at(name)
        try:
            # Not read_table, which imports pyarrow.dataset and so pandas: for a second a new owner would commit nothing.
            table = pq.ParquetFile(self._store.open_input(path)).read(columns=list(columns), use_threads=False)
            found = table.select(list(columns)).cast(pa.schema([SCHEMA.field(column) for column in columns]))
        except (*PARQUET_ERRORS, LookupError, ValueError) as error:
            _damaged(path, error)
        if "instantTime" in columns and found["instantTime"].null_count:
            _damaged(path, ValueError("a row without an instant"))
        return found

    def instants(self, files: Iterable[HistoryFile]) -> set[str]:
        """All instants in these files."""
        columns = [self.read(file.name, ["instantTime"]).to_pydict()["instantTime"] for file in files]
        return {instant for column in columns for instant in column}

    def _version(self) -> int:
        path = self.at(VERSION_FILE)
        try:
            return int(self._store.get(path).to_pybytes())
        except (FileNotFoundError, ValueError) as error:
            _damaged(path, error)


def manifest_numbers(names: Collection[str]) -> list[int]:
    """Numbers of all manifests among these names, ascending."""
    return sorted(int(found[1]) for found in map(_MANIFEST.fullmatch, names) if found)


def data_file(name: str) -> HistoryFile | None:
    """The Parquet file of that name, with unknown size; None for any other name."""
    found = _FILE.fullmatch(name)
    return HistoryFile(found[1], found[2], int(found[3]), 0) if found else None


def _history_file(name: str, size: int) -> HistoryFile:
    found = _FILE.fullmatch(name)
    if found is None:
        raise ValueError(f"{name!r} is not a file of a history")
    return HistoryFile(found[1], found[2], int(found[3]), size)


def _read_entry(value: object) -> HistoryFile:
    fields = Fields(value)
    return _history_file(fields.required("fileName", text), fields.required("fileLen", number))


_read_entries = list_of(_read_entry)


def rows_of(entries: Sequence[Archived]) -> pa.Table:
    """A table of ``SCHEMA``, in the order of instants."""
    ordered = sorted(entries, key=lambda entry: entry.instant)
    columns: dict[str, list[str] | list[bytes | None] | list[int]] = {
        "instantTime": [entry.instant for entry in ordered],
        "completionTime": [entry.completion for entry in ordered],
        "action": [entry.action for entry in ordered],
        "metadata": [entry.metadata for entry in ordered],
        "plan": [entry.plan for entry in ordered],
        "version": [1] * len(ordered),
    }
    return pa.Table.from_pydict(columns, schema=SCHEMA)


def encode_file(rows: pa.Table) -> pa.Buffer:
    """One Parquet file. ``rows``: a table of ``SCHEMA``."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        SCHEMA,
        store_schema=False,
        write_page_checksum=True,
        compression="gzip",
        use_dictionary=["action", "version"],  # type: ignore[arg-type]
        write_statistics=_SHORT,
    ) as writer:
        writer.write_table(rows.cast(SCHEMA))
        writer.add_key_value_metadata(_FOOTER)
    return sink.getvalue()


def completions_of(rows: pa.Table) -> dict[str, str]:
    """Instant time to completion time; as in Hudi, an instant without one completed when it began."""
    columns = rows.set_column(1, "completionTime", pc.coalesce(rows["completionTime"], rows["instantTime"])).to_pydict()
    return dict(zip(columns["instantTime"], columns["completionTime"], strict=True))


def metadata_of(rows: pa.Table) -> dict[str, bytes]:
    """Instant time to the content of the completed file, which no row may lack."""
    columns = rows.to_pydict()
    return dict(zip(columns["instantTime"], columns["metadata"], strict=True))


def _damaged(path: str, error: Exception) -> NoReturn:
    raise CorruptFileError(
        f"{path}, a part of the archived timeline, cannot be read: {error!r}", fix="Restore `.hoodie/timeline` from a copy."
    ) from error
