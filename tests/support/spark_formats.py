"""``python -m support.spark_formats KIND ROWS FOLDER``: a Delta or an Iceberg table by that format's own writer, and its copy by
the command. In a Spark of its own: a session has one default catalog, which is Hudi's in other tests and Delta's here.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headgate_cli.main import run
from support.spark_sessions import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JARS: Final = {"delta": "HEADGATE_DELTA_JARS", "iceberg": "HEADGATE_ICEBERG_JARS"}
_PROPERTIES: Final = {
    "delta": "'delta.enableDeletionVectors' = 'true'",
    "iceberg": "'format-version' = '2', 'write.update.mode' = 'merge-on-read', 'write.delete.mode' = 'merge-on-read'",
}
"""Both kinds leave deleted rows in their files, which only their own readers know of."""


def main() -> None:
    """Ends with the command's exit code."""
    kind, rows, folder = sys.argv[1:]
    spark = start_session(os.environ[_JARS[kind]], Path(folder), _settings(kind, folder) | {"spark.sql.shuffle.partitions": "2"})
    name = f"delta.`{folder}/orders`" if kind == "delta" else "ice.shop.orders"
    source = f"{folder}/orders" if kind == "delta" else name
    properties = _PROPERTIES[kind]
    spark.sql(
        f"CREATE TABLE {name} USING {kind} PARTITIONED BY (part) TBLPROPERTIES ({properties}) AS SELECT * FROM parquet.`{rows}`"
    )
    spark.sql(f"UPDATE {name} SET v = -1 WHERE ts % 5 = 0")
    spark.sql(f"DELETE FROM {name} WHERE ts % 7 = 0")
    version = _newest(spark, kind, name)
    spark.sql(f"DELETE FROM {name} WHERE ts % 2 = 0")
    of_table = ["--key", "id", "--partition-by", "part", "--ordering", "ts", "--buckets", "2", "--tasks", "2"]
    sys.exit(run(["bootstrap", source, "--format", kind, "--option", version, "--table", f"{folder}/ours", *of_table, "--json"]))


def _settings(kind: str, folder: str) -> dict[str, str]:
    if kind == "delta":
        return {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "2",
        }
    catalog = "spark.sql.catalog.ice"
    return {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": f"{folder}/ice",
    }


def _newest(spark: SparkSession, kind: str, name: str) -> str:
    """The option with which Spark reads the table as it is now."""
    if kind == "delta":
        return f"versionAsOf={spark.sql(f'DESCRIBE HISTORY {name}').first()['version']}"
    return (
        f"snapshot-id={spark.sql(f'SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at DESC').first()['snapshot_id']}"
    )


if __name__ == "__main__":
    main()
