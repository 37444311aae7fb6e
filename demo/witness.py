"""A reader beside the cluster: it observes the table repeatedly, and reads each committed log file before it is cleaned.

An upsert hides a double, so doubles are looked for in log blocks, where nothing is merged yet. These files go when their slice
was compacted and nobody needs the old one; ``doubles.py`` reports a file that went unread.

It also looks for slices of which hudi-rs leaves out a part (``half_archived``): they may come and go between two of its reads.
"""

import threading
import time
from collections.abc import Iterator

import pyarrow as pa

from demo.feed import KEY, ORDERING
from headgate_tables import hudi
from headgate_tables.arrow import Array, ChunkedArray
from headgate_tables.hudi.log.reader import DeleteBlock, RowsBlock, read_log_file
from headgate_tables.hudi.view import FileSlice
from headgate_tables.storage.open import open_store
from headgate_tables.system import SystemIds

_EVERY_S = 0.5
_KEY = "_hoodie_record_key"


def half_archived(table: hudi.Table) -> set[str]:
    """Paths of archived logs in slices without a base file that also have active logs: hudi-rs leaves these logs out."""
    first = min((commit.instant for commit in table.commits()), default="")
    found: set[str] = set()
    for part in (group.slices()[-1] for group in table.file_groups()):
        if part.base is None and part.logs[-1].instant >= first:
            found |= {part.path(log.name) for log in part.logs if log.instant < first}
    return found


class Witness(threading.Thread):
    """Observes the table on a thread. ``fullest``: (moment, log files of the fullest slice) of each observation; ``read``: events
    by the path of their log file; ``hidden``: log files that hudi-rs left out at any observation. Complete after ``stop``.
    """

    def __init__(self, url: str) -> None:
        super().__init__(name="witness", daemon=True)
        self.fullest: list[tuple[float, int]] = []
        self.read: dict[str, pa.Table] = {}
        self.hidden: set[str] = set()
        self._url = url
        self._store = open_store(url, None, SystemIds())
        self._end = threading.Event()
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            with hudi.open_table(self._url) as table:
                while not self._end.wait(_EVERY_S):
                    self._observe(table)
                self._observe(table)
        except BaseException as error:  # noqa: BLE001 - stop raises it in the main thread
            self._failure = error

    def stop(self) -> None:
        """Observes once more and ends. Raises the error of any observation."""
        self._end.set()
        self.join()
        if self._failure is not None:
            raise self._failure

    def _observe(self, table: hudi.Table) -> None:
        self.hidden |= half_archived(table)
        slices = [group.slices() for group in table.file_groups()]
        self.fullest.append((time.monotonic(), max((len(parts[-1].logs) for parts in slices), default=0)))
        for part in (part for parts in slices for part in parts):
            self._read(part)

    def _read(self, part: FileSlice) -> None:
        for path in (part.path(log.name) for log in part.logs):
            if path not in self.read:
                try:
                    content = self._store.get(path)
                except FileNotFoundError:
                    continue  # cleaned before we came: it stays unread, and is counted as that
                self.read[path] = pa.concat_tables(_events(content, path))


def _events(content: pa.Buffer, path: str) -> Iterator[pa.Table]:
    for block in read_log_file(content, path, lambda _: True, strict=True):
        rows: dict[str, Array | ChunkedArray]
        if isinstance(block, RowsBlock):
            stored = block.read([_KEY, ORDERING])
            rows = {KEY: stored[_KEY], ORDERING: stored[ORDERING]}
        else:
            if block.rows.ordering is None:
                raise ValueError(f"{path}: a delete has no {ORDERING}")
            rows = {KEY: block.rows.keys, ORDERING: block.rows.ordering}
        deleted = pa.repeat(isinstance(block, DeleteBlock), len(rows[KEY]))
        yield pa.table({KEY: rows[KEY].cast(pa.string()), ORDERING: rows[ORDERING].cast(pa.int64()), "deleted": deleted})
