"""Finds events that were committed twice, in the unmerged log blocks that the witness read before they were cleaned."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from demo.feed import KEY, ORDERING


@dataclass(frozen=True, slots=True)
class Blocks:
    """Counts of ``events`` and log ``files``, of events committed again (``doubled``) and of committed files that went
    ``unread``.
    """

    events: int
    files: int
    doubled: int
    unread: int


def count_events(read: Mapping[str, pa.Table], committed: Collection[str]) -> Blocks:
    """Counts events and doubles. ``read``: events by log file; ``committed``: log files of all commits. An event is a key and its
    time; a flight has no two events of one time.
    """
    events = pa.concat_tables(read[path] for path in committed if path in read)
    with duckdb.connect() as db:
        db.register("events", events)
        total, distinct = db.execute(f"select count(*), count(distinct ({KEY}, {ORDERING}, deleted)) from events").fetchall()[0]
    return Blocks(total, len(committed), total - distinct, len(set(committed) - set(read)))
