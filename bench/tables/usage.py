"""What a contender used: CPU of all its threads and processes, and the most memory it ever held.

Runs in every contender's environment, so it knows the standard library only.
"""

import os
import resource
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Moment:
    """Seconds of wall clock and of CPU (user and system), up to now."""

    wall: float
    cpu: float

    @classmethod
    def now(cls, processes: Iterable[int] = ()) -> "Moment":
        """``processes``: ids of running children whose CPU counts too (a JVM); ended ones are in by themselves."""
        used = sum(_seconds(resource.getrusage(who)) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return cls(perf_counter(), used + sum(map(_running, processes)))

    def __sub__(self, earlier: "Moment") -> "Moment":
        return Moment(self.wall - earlier.wall, self.cpu - earlier.cpu)


def peak_bytes(processes: Iterable[int] = ()) -> int:
    """The highest resident memory of this process and of ``processes``. Mapped input pages that were touched are part of it."""
    return sum(_peak(pid) for pid in (os.getpid(), *processes))


def folder_bytes(folder: Path) -> int:
    """Sizes of all files below ``folder``; one with several names counts once."""
    found = (file.stat() for file in folder.rglob("*") if file.is_file())
    return sum({(stat.st_dev, stat.st_ino): stat.st_size for stat in found}.values())


def _seconds(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


def _running(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _peak(pid: int) -> int:
    """VmHWM where there is a /proc: ru_maxrss survives exec on Linux, so it would start with the parent's."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
