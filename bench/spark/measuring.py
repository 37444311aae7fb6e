"""Wall clock and CPU of a Spark job: this process, Spark's Java, and the Python workers below it."""

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TICKS = os.sysconf("SC_CLK_TCK")


def measured(session: "SparkSession", work: Callable[[], object]) -> dict[str, float]:
    """Seconds ``wall`` and ``cpu`` of ``work``."""
    java = session.sparkContext._gateway.proc.pid
    wall, cpu = perf_counter(), _cpu(java)
    work()
    return {"wall": perf_counter() - wall, "cpu": _cpu(java) - cpu}


def _cpu(java: int) -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime + sum(map(_seconds, _tree(java)))


def _tree(root: int) -> Iterator[int]:
    yield root
    for children in Path(f"/proc/{root}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from _tree(int(child))


def _seconds(pid: int) -> float:
    """With those of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS
