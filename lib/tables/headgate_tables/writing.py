"""What a writer does with rows of a table, by the table's format: check, key, place and sift them, and write files."""

from collections.abc import Mapping

import pyarrow as pa

from headgate_tables.face.definition import Definition
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.rescaling import RescaleJob, RescaleUnit
from headgate_tables.face.settings import TableSettings
from headgate_tables.face.writing import BulkFiles, ChangeSink, LoadTask
from headgate_tables.hudi import place as placing
from headgate_tables.hudi.batches import conform_to_table
from headgate_tables.hudi.change_writer import ChangeWriter
from headgate_tables.hudi.keys.bucket import key_group
from headgate_tables.hudi.keys.java_hash import Int32s
from headgate_tables.hudi.place import Placed
from headgate_tables.hudi.services.bulk import base_files
from headgate_tables.hudi.services.bulk import log_files as load_logs
from headgate_tables.hudi.services.compaction.rewriting import UnitRewriter
from headgate_tables.hudi.services.compaction.task import layout_in
from headgate_tables.hudi.sift import BucketedRows, Sifted, concatenated, sift
from headgate_tables.opening import as_hudi
from headgate_tables.storage.store import Store

__all__ = [
    "BucketedRows",
    "Placed",
    "Sifted",
    "bulk_files",
    "change_sink",
    "concatenated",
    "conform",
    "key_group",
    "log_files",
    "partitions_of",
    "place",
    "place_deletes",
    "rescale_unit",
    "sift",
]


def place(rows: pa.Table, deletes: pa.BooleanArray | None, definition: Definition) -> Placed:
    """Checks and keys the rows, and returns the bucket of each; they keep their order. Raises FixCall errors.

    ``deletes``: bool[n] without null, in one chunk; None: there are none.
    """
    return placing.place(rows, deletes, as_hudi(definition))


def place_deletes(keys: pa.Table, definition: Definition) -> Placed:
    """``place`` of deletes alone, which need no more than record key, partition and ordering columns. Raises FixCall errors."""
    return placing.place_deletes(keys, as_hudi(definition))


def partitions_of(rows: pa.Table, definition: Definition) -> tuple[Int32s, list[str]]:
    """int32[n] into the partition paths that occur, each once. ``rows`` needs the partition columns. Raises FixCall errors."""
    return placing.partitions_of(rows, as_hudi(definition))


def conform(rows: pa.Table, definition: Definition) -> pa.Table:
    """Upserts with the table's columns and types. Raises FixCall errors."""
    return conform_to_table(rows, as_hudi(definition))


def change_sink(folder: Store, definition: Definition, *, epoch: int, process: str) -> ChangeSink:
    """Writes data files in the folder. ``process``: the random id of the process (rule RO8)."""
    return ChangeWriter(folder, as_hudi(definition), epoch=epoch, process=process, ordinal=0)


def bulk_files(
    folder: Store, definition: Definition, task: LoadTask, *, settings: Mapping[str, str], overwriting: bool = False
) -> BulkFiles:
    """Writes the base files of one task of a bulk load. ``settings``: the table's, as text by key. ``overwriting``: the files
    begin new file groups, which replace those of their buckets.
    """
    texts = TableSettings.from_texts(settings)
    return base_files.BulkFiles(folder, as_hudi(definition), task, settings=texts, overwriting=overwriting)


def rescale_unit(folder: Store, job: RescaleJob, unit: RescaleUnit) -> list[WriteStatus]:
    """Rewrites a unit of a rescale; may run twice, at once or later. Returns durable files. Raises TablesError."""
    definition, target = as_hudi(job.definition), as_hudi(job.target)
    return UnitRewriter(folder, job, definition, target, layout_in(folder, definition)).rewrite(unit)


def log_files(folder: Store, definition: Definition, task: LoadTask, *, deletes: bool) -> BulkFiles:
    """As ``bulk_files``, for log files that go into the file groups of a table in use. ``deletes``: the rows are to be deleted,
    and need no more than record key, partition and ordering columns.
    """
    return load_logs.LogFiles(folder, as_hudi(definition), task, deletes=deletes)
