"""Headgate's tables from PySpark, without a Hudi jar. Drivers and executors need this package; PySpark 3.5 or newer."""

from typing import TYPE_CHECKING

from headgate_spark.bulk_load import bulk_insert, delete_partitions
from headgate_spark.planning import LoadPlan, plan_bulk_insert
from headgate_spark.progress import Written
from headgate_spark.reading import read, typed_errors

if TYPE_CHECKING:
    from headgate_spark.source import HeadgateSource, register

__all__ = [
    "HeadgateSource",
    "LoadPlan",
    "Written",
    "bulk_insert",
    "delete_partitions",
    "plan_bulk_insert",
    "read",
    "register",
    "typed_errors",
]


def __getattr__(name: str) -> object:
    """The data source is imported when it is asked for: PySpark 3.5 has no interface for it."""
    if name in ("HeadgateSource", "register"):
        from headgate_spark import source

        return getattr(source, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
