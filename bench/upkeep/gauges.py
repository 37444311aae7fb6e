"""What a table's readers pay, measured from outside while the cluster writes it."""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from headgate_tables.hudi import Table, open_table
from headgate_tables.hudi.log.names import parse_base_name, parse_log_name
from headgate_tables.hudi.timeline.active import Timeline, read_timeline
from headgate_tables.hudi.view import FileSlice
from support.lookout import Lookout

PERIOD_S = 5.0
OPENINGS = 9


@dataclass(frozen=True, slots=True)
class Gauge:
    """``at``: seconds since the start. ``log_files``, ``log_bytes``: the most of any slice. ``instants``: completed, active."""

    at: float
    log_files: int
    log_bytes: int
    instants: int


class Gauges:
    """Looks every few seconds until ``stop``, with a handle of its own each time, as a new reader would."""

    def __init__(self, url: str) -> None:
        self.seen: list[Gauge] = []
        self._url = url
        self._begin = time.monotonic()
        self._lookout = Lookout("gauges", self._look, PERIOD_S)

    def stop(self) -> None:
        self._lookout.stop()

    def _look(self) -> None:
        self.seen.append(look(self._url, time.monotonic() - self._begin))


def look(url: str, at: float = 0.0) -> Gauge:
    """One look at the whole table."""
    with open_table(url) as table:
        slices = [group.slices()[-1] for group in table.file_groups() if group.slices()]
        instants = len(read_timeline(table._store).completed)
    files = max((len(each.logs) for each in slices), default=0)
    return Gauge(at, files, max((each.log_bytes for each in slices), default=0), instants)


def opening_seconds(url: str) -> float:
    """Median time to open the table and know its file groups."""
    took: list[float] = []
    for _ in range(OPENINGS):
        begin = time.perf_counter()
        with open_table(url) as table:
            table.file_groups()
        took.append(time.perf_counter() - begin)
    return median(took)


def orphans(folder: Path) -> list[str]:
    """Files of the table that belong to nothing: temporary ones, stages of dead processes, data of instants that never completed.

    To be asked when nothing is pending and everything due was swept.
    """
    with open_table(str(folder)) as table:
        timeline = read_timeline(table._store)
        known = {part.path(name) for part in _parts(table) for name in part.names}
    files = (path for path in folder.rglob("*") if path.is_file())
    found = [path.relative_to(folder).as_posix() for path in files if _is_orphan(path, folder, known, timeline)]
    return sorted(found)


def _is_orphan(path: Path, folder: Path, known: Collection[str], timeline: Timeline) -> bool:
    relative, name = path.relative_to(folder).as_posix(), path.name
    if ".hoodie/" not in relative:
        data = parse_log_name(name) or parse_base_name(name)
        return name.startswith(".tmp-") or (data is not None and relative not in known)
    if relative.startswith(".hoodie/timeline/"):
        return name.partition(".")[0] in timeline.pending
    return name.startswith(".tmp-") or ("/stage/" in relative and _is_stale(path))


def _is_stale(path: Path) -> bool:
    """Staged names of won slots stay until the next fold: they are second names of files that are in place."""
    return path.stat().st_nlink == 1


def _parts(table: Table) -> Sequence[FileSlice]:
    return [part for group in table.file_groups() for part in group.slices()]
