"""Hudi's side: its own writer and reader in the same kind of session. What costs time without being the work is off, as in
`bench.compaction.by_spark`: that helps it.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.spark.lineitem import KEY, ORDERING
from bench.spark.measuring import measured
from bench.spark.ours import BUCKETS, answered, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPTIONS = {
    "hoodie.table.name": "lineitem",
    "hoodie.write.table.version": "8",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": ",".join(KEY),
    "hoodie.datasource.write.precombine.field": ORDERING,
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.bucket.index.num.buckets": str(BUCKETS),
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.bloom.filter.enabled": "false",
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.bulkinsert.shuffle.parallelism": str(BUCKETS),
    "hoodie.upsert.shuffle.parallelism": "2",
}


def load(source: str, warm_up: str, url: str) -> dict[str, float]:
    """As ``ours.load``, with the bucket index and Hudi's row writer."""
    with session() as spark:
        _write(spark, warm_up, f"{url}-warm-up", "bulk_insert", index="BUCKET")
        return measured(spark, lambda: _write(spark, source, url, "bulk_insert", index="BUCKET"))


def sort(source: str, warm_up: str, url: str, columns: str) -> dict[str, float]:
    """Clusters a table of the file's rows by columns. It has no bucket index: Hudi does not cluster one."""
    with session() as spark:
        for rows, folder in ((warm_up, f"{url}-warm-up"), (source, url)):
            _write(spark, rows, folder, "bulk_insert", index="SIMPLE")
        statement = "call run_clustering(path => '{}', op => 'scheduleAndExecute', order => '{}')"
        spark.sql(statement.format(f"{url}-warm-up", columns)).collect()
        return measured(spark, lambda: spark.sql(statement.format(url, columns)).collect())


def query(urls: Sequence[str], whole: bool) -> dict[str, object]:
    """As ``ours.query``, by Hudi's reader, of the same tables."""
    with session() as spark:
        reader = spark.read.format("hudi").option("hoodie.metadata.enable", "false")
        return answered(spark, [reader.load(url) for url in urls], whole)


def stream(batches: Sequence[str], url: str) -> dict[str, list[float]]:
    """As ``ours.stream``."""
    with session() as spark:
        took = []
        for batch in batches:
            began = time.perf_counter()
            _write(spark, batch, url, "upsert", index="BUCKET")
            took.append(time.perf_counter() - began)
    return {"seconds": took[3:]}


def _write(spark: "SparkSession", source: str, url: str, operation: str, *, index: str) -> None:
    options = {**_OPTIONS, "hoodie.datasource.write.operation": operation, "hoodie.index.type": index}
    spark.read.parquet(source).write.format("hudi").options(**options).mode("append").save(url)
