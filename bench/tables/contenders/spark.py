"""Hudi 1.2.0 on Spark: the same kind of table (8 buckets a partition), written by the reference writer in a warm session.

Rows reach it as a Parquet file, because ``createDataFrame`` of this Spark goes row by row; writing that file is not counted,
but reading it is (some 20 ms). Metadata table, timeline server and compaction are off, which helps it.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.tables.contenders.contender import KEY, ORDERING, PARTITION


class HudiSpark:
    """Needs the environment of requirements-interop.lock, Java 17, and the bundle in HEADGATE_HUDI_JAR."""

    def __init__(self, folder: Path, schema: pa.Schema, *, partitioned: bool) -> None:
        self._path = f"file://{folder}/table"
        self._folder = folder
        self._names = schema.names
        self._session = start_session(folder)
        self.processes = (self._session.sparkContext._gateway.proc.pid,)
        generator = "SimpleKeyGenerator" if partitioned else "NonpartitionedKeyGenerator"
        self._options = {
            "hoodie.table.name": "events",
            "hoodie.write.table.version": "8",
            "hoodie.write.auto.upgrade": "false",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.datasource.write.recordkey.field": KEY,
            "hoodie.datasource.write.precombine.field": ORDERING,
            "hoodie.datasource.write.partitionpath.field": PARTITION if partitioned else "",
            "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
            "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": "8",
            "hoodie.metadata.enable": "false",
            "hoodie.embed.timeline.server": "false",
            "hoodie.write.markers.type": "DIRECT",
            "hoodie.compact.inline": "false",
            "hoodie.upsert.shuffle.parallelism": "8",
        }

    def prepare(self, rows: pa.Table) -> str:
        """A Parquet file of ``rows`` beside the table, for ``upsert``; not measured."""
        path = f"{self._folder.parent}/{self._folder.name}.parquet"
        pq.write_table(rows, path, coerce_timestamps="us")
        return path

    def upsert(self, path: str) -> None:
        frame = self._session.read.parquet(path)
        frame.write.format("hudi").options(**self._options).mode("append").save(self._path)

    def states(self) -> Iterator[tuple[str, pa.Table]]:
        target = f"{self._folder}/read"
        self._session.read.format("hudi").load(self._path).select(*self._names).write.parquet(target)
        yield "Hudi on Spark", pq.read_table(target)


def start_session(folder: Path) -> SparkSession:
    """A local one with two threads, as fast as it goes: full JIT, a heap of 4 GB."""
    java = "-XX:+UseParallelGC -Duser.timezone=UTC"
    builder = SparkSession.builder.master("local[2]").appName("bench").config("spark.jars", os.environ["HEADGATE_HUDI_JAR"])
    settings = {
        "spark.driver.memory": "4g",
        "spark.driver.extraJavaOptions": java,
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
