"""Whether Arrow reads a DataFrame's rows as Spark does. Pure: what it looks at is handed in.

Where there is a doubt the answer is no, with the reason, and Spark reads.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from headgate_spark.source_files import FilePlace, service_at

MOST_FILES: Final = 10_000
"""The driver reads the footer of each."""
REBASE: Final = "spark.sql.parquet.datetimeRebaseModeInRead"
FLAGS: Final = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.fieldId.read.enabled",
)
"""Settings of Spark that give other rows when they are true."""
_OPTIONS: Final = frozenset({"path", "paths"})
_CODECS: Final = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4", "LZ4_RAW", "BROTLI"})
_DAYS_CHANGED: Final = datetime.date(1582, 10, 15)
_TIMES_CHANGED: Final = datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC)
"""Spark takes older values of other programs for those of another calendar, or of other time zones."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What Spark says of a DataFrame that is a scan of Parquet files and nothing else. ``files``: addresses, percent-encoded;
    ``bytes``: of all of them; ``options``: names of those of the reader; ``settings``: those of the session, by name.
    """

    files: Sequence[str]
    bytes: int
    options: Sequence[str] = ()
    partition_columns: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)


def why_not(scan: Scan) -> str:
    """Why tasks cannot read these files, "" when nothing speaks against it that is known without looking into them."""
    if not scan.files:
        return "there is no file"
    if len(scan.files) > MOST_FILES:
        return f"there are more than {MOST_FILES:,} files"
    if others := sorted({name.lower() for name in scan.options} - _OPTIONS):
        return f"the reader has options: {', '.join(others)}"
    if scan.partition_columns:
        return "columns are in the names of folders"
    if on := next((name for name in FLAGS if scan.settings.get(name, "").lower() == "true"), ""):
        return f"{on} is true"
    strange = next((file for file in scan.files if FilePlace.of(file) is None), "")
    return f"{strange} is at an address that only Spark knows" if strange else ""


def why_out_of_reach(places: Sequence[FilePlace], table: str) -> str:
    """Why it is not known that tasks reach the files: they have the settings of the table's store, Spark has its own."""
    strange = next((place for place in places if service_at(place.folder) not in (None, service_at(table))), None)
    return f"{strange.address} is in another store than the table" if strange else ""


def why_file_differs(metadata: pq.FileMetaData, found: pa.Schema, wanted: pa.Schema, rebase: str) -> str:
    """Why a file would give other rows to Spark. ``found``: its columns by Arrow; ``wanted``: those to be read, by Spark;
    ``rebase``: Spark's setting ``REBASE``.
    """
    leaves = [at for at in range(metadata.num_columns) if metadata.schema.column(at).path.split(".")[0] in wanted.names]
    if any(metadata.schema.column(at).physical_type == "INT96" for at in leaves):
        return "has times of 96 bits"
    for column in wanted:
        count = found.names.count(column.name)
        if count != 1:
            return f"has {count or 'no'} columns of the name {column.name!r}"
        if not _alike(found.field(column.name).type, column.type):
            return f"has the column {column.name!r} as {found.field(column.name).type}, and Spark has it as {column.type}"
    if metadata.num_row_groups and (strange := _strange_codec(metadata, leaves)):
        return f"is compressed with {strange}"
    return "" if _calendar_is_known(metadata, rebase) else _why_too_old(metadata, leaves)


def _alike(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of both are the same ones, as rows of text and bytes are in any layout."""
    if pat.is_dictionary(found):
        found = found.value_type
    if pat.is_timestamp(found) and pat.is_timestamp(wanted):
        return (found.tz is None) == (wanted.tz is None) and found.unit in ("ms", "us")
    if pat.is_large_string(found) or pat.is_large_binary(found):
        return wanted == (pa.string() if pat.is_large_string(found) else pa.binary())
    return _equal(found, wanted)


def _equal(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Equal but for the names that lists and maps have for what is in them, and for time zones, which are UTC in the file."""
    if pat.is_map(found) and pat.is_map(wanted):
        return _equal(found.key_type, wanted.key_type) and _equal(found.item_type, wanted.item_type)
    if pat.is_list(found) and pat.is_list(wanted):
        return _equal(found.value_type, wanted.value_type)
    if pat.is_struct(found) and pat.is_struct(wanted):
        ours, theirs = ([kind.field(at) for at in range(kind.num_fields)] for kind in (found, wanted))
        return [each.name for each in ours] == [each.name for each in theirs] and all(
            _equal(one.type, other.type) for one, other in zip(ours, theirs, strict=True)
        )
    if pat.is_timestamp(found) and pat.is_timestamp(wanted):
        return (found.tz is None) == (wanted.tz is None) and found.unit == wanted.unit
    return bool(found == wanted)


def _strange_codec(metadata: pq.FileMetaData, leaves: Sequence[int]) -> str:
    first = metadata.row_group(0)
    return next((codec for at in leaves if (codec := str(first.column(at).compression)) not in _CODECS), "")


def _calendar_is_known(metadata: pq.FileMetaData, rebase: str) -> bool:
    keys = metadata.metadata or {}
    if b"org.apache.spark.legacyDateTime" in keys:
        return False
    version = keys.get(b"org.apache.spark.version")
    return rebase == "CORRECTED" if version is None else version.split(b".")[0].isdigit() and int(version.split(b".")[0]) >= 3


def _why_too_old(metadata: pq.FileMetaData, leaves: Sequence[int]) -> str:
    for at in leaves:
        kind = metadata.schema.column(at).logical_type.type
        if kind in ("DATE", "TIMESTAMP"):
            for number in range(metadata.num_row_groups):
                if not _is_recent(metadata.row_group(number).column(at)):
                    return f"may have dates before 1582 or times before 1900 in {metadata.schema.column(at).path!r}"
    return ""


def _is_recent(chunk: pq.ColumnChunkMetaData) -> bool:
    stats = chunk.statistics
    if stats is None or not stats.has_min_max:
        return stats is not None and stats.null_count == chunk.num_values
    try:
        least = stats.min
    except (ValueError, OverflowError):  # Python has no such year
        return False
    if isinstance(least, datetime.datetime):
        return least.replace(tzinfo=least.tzinfo or datetime.UTC) >= _TIMES_CHANGED
    return isinstance(least, datetime.date) and least >= _DAYS_CHANGED
