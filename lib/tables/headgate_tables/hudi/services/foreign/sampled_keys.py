"""Samples rows that another program wrote: does it make keys and partition paths as we do, and what are its buckets?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate_tables.errors import TablesError, UnsupportedTableError
from headgate_tables.hudi.base_reader import BaseFile, gone
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.entries import one_array
from headgate_tables.hudi.keys.bucket import Hashes, bucket_of, buckets_of_hashes, record_hashes
from headgate_tables.hudi.keys.partition_path import PartitionSpec, partition_paths
from headgate_tables.hudi.keys.record_key import KeySpec, read_keys
from headgate_tables.hudi.log.names import parse_base_name, parse_log_name
from headgate_tables.hudi.log.reader import RowsBlock, read_log_file
from headgate_tables.hudi.schema.conform import conform
from headgate_tables.hudi.schema.meta_columns import PARTITION_PATH, RECORD_KEY, with_meta
from headgate_tables.storage.store import Store

FILES = 12
"""Files to sample. More: a wrong bucket count of few rows is found more surely, and adopting takes longer."""
ROWS = 2_000
"""Rows to sample of each file."""
MOST_BUCKETS = 1 << 16
"""The largest bucket count that is tried."""


@dataclass(frozen=True, slots=True)
class Sample:
    """uint32[n] hashes of record keys, int64[n] the buckets in the names of the files that they lie in, and uint32[n] how many
    their partitions have.
    """

    hashes: Hashes
    buckets: np.ndarray[tuple[int], np.dtype[np.int64]]
    counts: Hashes

    def fits(self, counts: int | Hashes) -> bool:
        """Whether every row lies in the bucket that it has with as many."""
        return bool((buckets_of_hashes(self.hashes, counts) == self.buckets).all())

    def fitting(self) -> list[int]:
        """Bucket counts with which every row lies where it does, the smallest first."""
        if not len(self.hashes):
            return []
        counts = np.arange(int(self.buckets.max()) + 1, MOST_BUCKETS + 1, dtype=np.uint32)
        hashes = self.hashes & np.uint32(0x7FFFFFFF)
        for start, stop in ((0, 32), (32, 1024), (1024, len(hashes))):
            part = slice(start, stop)
            counts = counts[(hashes[part, None] % counts[None, :] == self.buckets[part, None]).all(axis=0)]
        return [int(count) for count in counts]


def sample(store: Store, definition: Definition, paths: Sequence[str]) -> Sample:
    """Rows of some of these data files. Raises UnsupportedTableError for keys or partition paths that we write differently."""
    chosen = [paths[at] for at in sorted({round(at) for at in np.linspace(0, len(paths) - 1, FILES)})] if paths else []
    hashes: list[Hashes] = []
    buckets: list[int] = []
    counts: list[int] = []
    for path in chosen:
        for rows in _rows(store, definition, path):
            found = _hashes(rows, definition, path)
            hashes.append(found)
            buckets += [bucket_of(_file_id(path))] * len(found)
            counts += [definition.buckets_in(path.rpartition("/")[0])] * len(found)
    together = np.concatenate(hashes) if hashes else np.zeros(0, np.uint32)
    return Sample(together, np.asarray(buckets, np.int64), np.asarray(counts, np.uint32))


def _file_id(path: str) -> str:
    name = path.rpartition("/")[2]
    parsed = parse_log_name(name) or parse_base_name(name)
    return parsed.file_id if parsed else name


def _rows(store: Store, definition: Definition, path: str) -> Iterator[pa.Table]:
    """At most one table: the first rows of a base file, or those of a log's first block of whole rows."""
    columns = list(dict.fromkeys([RECORD_KEY, PARTITION_PATH, *definition.record_key, *definition.partition_by]))
    schema = with_meta(definition.schema)
    target = pa.schema([schema.field(name) for name in columns])
    if path.endswith(".parquet"):
        base = BaseFile(store, path)
        for rows in base.read(base.row_groups()[0][:1], target):
            yield rows.slice(0, ROWS)
            return
        return
    for block in read_log_file(_log(store, path), path, lambda _: True):
        if isinstance(block, RowsBlock) and not block.partial:
            yield conform(block.read(columns).slice(0, ROWS), target, path)
            return


def _log(store: Store, path: str) -> pa.Buffer:
    try:
        return store.get(path)
    except FileNotFoundError as error:
        raise gone(path) from error


def _hashes(rows: pa.Table, definition: Definition, path: str) -> Hashes:
    """Hashes of the record keys; compares keys and partition paths with those that we would have written."""
    spec = KeySpec(definition.record_key, definition.prefixed_keys)
    partition = path.rpartition("/")[0]
    try:
        records = read_keys(rows, spec)
        paths = partition_paths(rows, PartitionSpec(definition.partition_by, definition.hive_style, definition.url_encode))[1]
    except TablesError as error:
        raise _otherwise(path, f"holds keys or partition values that cannot be written here: {error.message}") from error
    stored = one_array(rows[RECORD_KEY])
    if not stored.equals(records.keys):
        at = next(at for at, (ours, theirs) in enumerate(zip(records.keys, stored, strict=True)) if ours != theirs)
        raise _otherwise(
            path, f"has the record key {stored[at].as_py()!r} where this library writes {records.keys[at].as_py()!r}"
        )
    if rows.num_rows and paths != [partition]:
        ours = next(each for each in paths if each != partition)
        raise _otherwise(path, f"holds rows that this library would write to {ours!r}")
    return record_hashes(records, spec)


def _otherwise(path: str, how: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"{path} {how}", fix="Go on writing the table with the program that made it, or load its rows into a new table."
    )
