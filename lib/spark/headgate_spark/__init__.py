"""Headgate's tables from PySpark, without a Hudi jar. Drivers and executors need this package; PySpark 3.5 or newer."""

from headgate_spark.bootstrap import Copied, CopyPlan, bootstrap
from headgate_spark.bulk_load import bulk_insert, delete_partitions
from headgate_spark.live_load import delete, upsert
from headgate_spark.planning import LoadPlan, plan_bulk_insert
from headgate_spark.progress import Written
from headgate_spark.reading import read, typed_errors
from headgate_spark.rescaling import rescale

__all__ = [
    "Copied",
    "CopyPlan",
    "LoadPlan",
    "Written",
    "bootstrap",
    "bulk_insert",
    "delete",
    "delete_partitions",
    "plan_bulk_insert",
    "read",
    "rescale",
    "typed_errors",
    "upsert",
]
