"""What a DataFrame reads, as Spark's plan says it; and whether its rows can be read without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Literal, get_args

import pyarrow as pa
from pyspark.sql import DataFrame

from headgate_spark.likeness import FLAGS, REBASE, Scan, why_file_differs, why_not, why_out_of_reach
from headgate_spark.source_files import FilePlace, Group, groups_of
from headgate_tables.errors import OptionError, TablesError
from headgate_tables.face.writing import ReadBy
from headgate_tables.opening import PARQUET_ERRORS

_SPARK: Final = "org.apache.spark.sql.execution.datasources."
_LOGICAL: Final = _SPARK + "LogicalRelation"
_KINDS: Final = (_SPARK + "HadoopFsRelation", _SPARK + "parquet.ParquetFileFormat", _SPARK + "InMemoryFileIndex")
_FOOTERS_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class ReadingChoice:
    """How a load reads. ``groups``: what tasks read without Spark; None when Spark reads, and ``why``."""

    groups: Sequence[Group] | None
    why: str = ""

    @property
    def by(self) -> Literal["arrow", "spark"]:
        """As plans name it."""
        return "spark" if self.groups is None else "arrow"


def reading_of(
    df: DataFrame, schema: pa.Schema, table: str, storage_options: Mapping[str, str] | None, read_by: ReadBy, *, few: bool
) -> ReadingChoice:
    """``schema``: the columns to read, in Spark's types; ``table``: the URL of the table. ``few``: one task reads and writes the
    rows. Then nothing is shuffled that Arrow would make cheaper, and the driver need not open the files to find out.

    Raises OptionError when Arrow is asked for and would give other rows, or none.
    """
    if read_by not in get_args(ReadBy):
        raise OptionError(f"read_by={read_by!r}", fix=f"Use one of {', '.join(get_args(ReadBy))}.")
    if read_by == "spark":
        return ReadingChoice(None, "it was asked for")
    if read_by == "auto" and few:
        return ReadingChoice(None, "one task reads and writes the few rows")
    found = _found(df, schema, table, storage_options, forced=read_by == "arrow")
    if read_by == "arrow" and found.groups is None:
        raise OptionError(f"Arrow cannot read the rows: {found.why}", fix="Let `auto`, the default, or `spark` read them.")
    return found


def _found(
    df: DataFrame, schema: pa.Schema, table: str, storage_options: Mapping[str, str] | None, *, forced: bool
) -> ReadingChoice:
    scan = scan_of(df)
    if scan is None:
        return ReadingChoice(None, "the DataFrame is more than a scan of Parquet files, or Spark does not show what it is")
    if why := why_not(scan):
        return ReadingChoice(None, why)
    places = [place for file in scan.files if (place := FilePlace.of(file)) is not None]
    if not forced and (why := why_out_of_reach(places, table)):
        return ReadingChoice(None, why)
    footers = _Footers(schema, table, storage_options, scan.settings.get(REBASE, ""))
    groups: list[Group] = []
    size = 0
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        for of_file in pool.map(footers.look, places):
            if isinstance(of_file, str):
                pool.shutdown(cancel_futures=True)
                return ReadingChoice(None, of_file)
            size += of_file[0]
            groups += of_file[1]
    if size != scan.bytes:
        return ReadingChoice(None, f"Spark sees {scan.bytes:,} bytes, and {size:,} are found here")
    return ReadingChoice(groups)


@dataclass(frozen=True, slots=True)
class _Footers:
    schema: pa.Schema
    table: str
    storage_options: Mapping[str, str] | None
    rebase: str

    def look(self, place: FilePlace) -> tuple[int, list[Group]] | str:
        """Bytes and row groups of a file, or why Spark has to read it."""
        try:
            size, file = place.open(place.options_of(self.table, self.storage_options))
            with file:
                why = why_file_differs(file.metadata, file.schema_arrow, self.schema, self.rebase)
                return f"{place.address} {why}" if why else (size, groups_of(place, file.metadata, size))
        except (TablesError, *PARQUET_ERRORS) as error:
            return f"{place.address} cannot be read here ({str(error).partition(chr(10))[0]})"


def scan_of(df: DataFrame) -> Scan | None:
    """None for a DataFrame that is anything else, or whose plan Spark does not show: through Spark Connect, for one."""
    try:
        return _scan(df)
    except Exception as error:
        if isinstance(error, AttributeError) or type(error).__module__.startswith(("py4j.", "pyspark.")):
            return None  # py4j comes with PySpark, and is no dependency
        raise


def _scan(df: DataFrame) -> Scan | None:
    execution = df._jdf.queryExecution()
    plans = execution.analyzed(), execution.optimizedPlan()  # in the second, an extension's rule may leave rows out
    if [str(plan.getClass().getName()) for plan in plans] != [_LOGICAL, _LOGICAL]:
        return None
    relation, size = plans[1].relation(), plans[1].stats().sizeInBytes()
    parts = relation, relation.fileFormat(), relation.location()
    if tuple(str(part.getClass().getName()) for part in parts) != _KINDS:
        return None
    conf = df.sparkSession.conf
    names = relation.options().keys().toSeq()
    return Scan(
        files=df.inputFiles(),
        bytes=int(str(size)),
        options=[str(names.apply(at)) for at in range(names.size())],
        partition_columns=relation.partitionSchema().length(),
        settings={name: conf.get(name) or "" for name in (*FLAGS, REBASE)},
    )
