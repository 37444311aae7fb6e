"""Real Hudi on Spark: a session made for many small jobs, tables that Spark writes, and their rows as Arrow."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.spark_sessions import start_session

_QUICK = {
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.clean.automatic": "false",
    "hoodie.index.bloom.num_entries": "200",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
    "hoodie.bloom.index.parallelism": "1",
    "hoodie.simple.index.parallelism": "1",
    "hoodie.global.simple.index.parallelism": "1",
    "hoodie.markers.delete.parallelism": "1",
    "hoodie.finalize.write.parallelism": "1",
    "hoodie.rollback.parallelism": "1",
    "hoodie.archive.delete.parallelism": "1",
    "hoodie.file.listing.parallelism": "1",
    "hoodie.metadata.index.column.stats.parallelism": "1",
}
_numbers = itertools.count()
_SESSION = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
}


def start_spark(jar: str, folder: Path, *, master: str = "local[2]") -> Any:
    """A session with Hudi's bundle. Otherwise as ``start_session``."""
    spark = start_session(jar, folder, _SESSION, master=master)
    spark.sparkContext.setLogLevel("OFF")
    return spark


def read_by_spark(
    spark: Any,
    path: Path,
    *,
    metadata_table: bool = False,
    mode: str = "snapshot",
    as_of: str | None = None,
    since: str | None = None,
) -> pa.Table:
    """The queries that ``Table.scan`` knows, meta columns included; a range's bounds are completion times. ``metadata_table``:
    let the reader trust one, which is Hudi's own default.
    """
    options = {"hoodie.metadata.enable": str(metadata_table).lower(), "hoodie.datasource.query.type": mode}
    if since is not None:
        options |= {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": since}
        options |= {"hoodie.datasource.read.end.instanttime": as_of} if as_of is not None else {}
    elif as_of is not None:
        options["as.of.instant"] = as_of
    return arrow_of(spark.read.format("hudi").options(**options).load(str(path)))


def arrow_of(frame: Any) -> pa.Table:
    """The rows of a DataFrame with Spark's own mapping to Arrow: no detour over Python or pandas values."""
    from pyspark.sql.pandas.types import to_arrow_schema

    batches = frame._collect_as_arrow()
    return pa.Table.from_batches(batches) if batches else to_arrow_schema(frame.schema).empty_table()


class SparkTable:
    """A table and the options with which Spark writes it; version 8 unless ``options`` or ``upgrades`` say otherwise.

    ``upgrades``: Spark brings the table to its newest version, as it does by default. ``folder``: an empty one; the table becomes
    ``folder/name``, and rows are handed to Spark as Parquet files beside it.
    """

    def __init__(
        self,
        spark: Any,
        folder: Path,
        name: str,
        *,
        key: str = "id",
        ordering: str | None = "ts",
        partition: Sequence[str] = (),
        index: str = "BUCKET",
        upgrades: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.path = folder / name
        self._catalog_name = f"interop_{next(_numbers)}"  # one catalog for all tests
        self._spark = spark
        self._inputs = folder / f"{name}.in"
        self._inputs.mkdir()
        self._count = itertools.count()
        generator = (
            "ComplexKeyGenerator" if len(partition) > 1 else "SimpleKeyGenerator" if partition else "NonpartitionedKeyGenerator"
        )
        self.options = _QUICK | {
            "hoodie.table.name": name,
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": key,
            "hoodie.datasource.write.partitionpath.field": ",".join(partition),
            "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
            "hoodie.write.complex.keygen.validation.enable": "false",
            "hoodie.index.type": index,
            "hoodie.bucket.index.num.buckets": "2",
            "hoodie.compact.inline": "false",
        }
        if not upgrades:
            self.options |= {"hoodie.write.table.version": "8", "hoodie.write.auto.upgrade": "false"}
        if ordering:
            self.options["hoodie.datasource.write.precombine.field"] = ordering
        self.options |= options or {}

    def write(self, rows: pa.Table, operation: str = "upsert", **options: str) -> None:
        """One write; options as ``hoodie_compact_inline="true"`` for ``hoodie.compact.inline``."""
        file = self._inputs / f"{next(self._count)}.parquet"
        pq.write_table(rows, file)
        more = {key.replace("_", "."): value for key, value in options.items()}
        settings = self.options | {"hoodie.datasource.write.operation": operation} | more
        self._spark.read.parquet(str(file)).write.format("hudi").options(**settings).mode("append").save(str(self.path))

    def upsert(self, rows: pa.Table, **options: str) -> None:
        self.write(rows, "upsert", **options)

    def delete(self, rows: pa.Table, **options: str) -> None:
        self.write(rows, "delete", **options)

    def call(self, procedure: str, **arguments: str | int) -> list[Any]:
        """A Hudi procedure on this table, with the table's options in the session: procedures read them from there only."""
        by_name = procedure in {
            "run_clean",
            "create_savepoint",
            "rollback_to_savepoint",
            "rollback_to_instant",
            "create_metadata_table",
            "downgrade_table",
            "upgrade_table",
        }
        if by_name:
            self._register()
        settings = self.options | {"hoodie.bucket.index.hash.field": self.options["hoodie.datasource.write.recordkey.field"]}
        settings |= {"hoodie.compact.inline.max.delta.commits": "1"}
        given = {"table": self._catalog_name} if by_name else {"path": str(self.path)}
        text = ", ".join(f"{key} => {value!r}" for key, value in (given | arguments).items())
        return list(self._with_settings(settings, f"call {procedure}({text})"))

    def run_scheduled_compactions(self) -> None:
        """By their times: ``run`` alone plans anew when it can, runs that and leaves what was scheduled."""
        timeline = self.path / ".hoodie" / "timeline"
        times = sorted(plan.name[:17] for plan in timeline.glob("*.compaction.requested"))
        for time in times:
            if not any(timeline.glob(f"{time}_*.commit")):
                self.call("run_compaction", op="run", timestamp=int(time))

    def sql(self, statement: str) -> None:
        """``statement`` with ``{t}`` for the table, which is registered first."""
        self._register()
        self._with_settings(self.options, statement.format(t=self._catalog_name))

    def actions(self) -> list[str]:
        """The active timeline's files without their times: ``deltacommit``, ``compaction.requested``, …, oldest first."""
        names = sorted(
            file.name for file in (self.path / ".hoodie" / "timeline").iterdir() if file.is_file() and file.name[0] != "."
        )
        return [name.partition(".")[2] for name in names]

    def rows(self) -> pa.Table:
        return read_by_spark(self._spark, self.path)

    def _register(self) -> None:
        self._spark.sql(f"create table if not exists {self._catalog_name} using hudi location '{self.path}'")

    def _with_settings(self, settings: Mapping[str, str], statement: str) -> list[Any]:
        for key, value in settings.items():
            self._spark.conf.set(key, value)
        try:
            found: list[Any] = self._spark.sql(statement).collect()
            return found
        finally:
            for key in settings:
                self._spark.conf.unset(key)
