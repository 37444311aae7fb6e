"""Headgate's tables from PySpark, without a Hudi jar. Drivers and executors need this package; PySpark 3.5 or newer."""

from headgate_spark.bulk_load import bulk_insert, delete_partitions

__all__ = ["bulk_insert", "delete_partitions"]
