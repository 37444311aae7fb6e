"""What the committed log blocks hold, unmerged: an upsert hides a double, so they are looked for where nothing is merged yet."""

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa

from demo.feed import KEY, ORDERING
from headgate_tables import hudi
from headgate_tables.hudi.log.reader import DeleteBlock, RowsBlock, read_log_file
from headgate_tables.storage.open import open_store
from headgate_tables.system import SystemIds

_KEY = "_hoodie_record_key"


def count_events(url: str) -> tuple[int, int]:
    """Events in all committed blocks, and how many of them are there again. An event is a key and its time; a flight has
    no two events of one time.
    """
    store = open_store(url, None, SystemIds())
    with hudi.open_table(url) as table:
        paths = [part.path(log.name) for group in table.file_groups() for part in group.slices() for log in part.logs]
    events = pa.concat_tables(rows for path in paths for rows in _events(store.get(path), path))
    with duckdb.connect() as db:
        db.register("events", events)
        total, distinct = db.execute(f"select count(*), count(distinct ({KEY}, {ORDERING}, deleted)) from events").fetchall()[0]
    return total, total - distinct


def verify(url: str) -> hudi.Verification:
    """Every byte of slots, timeline and files against what was committed."""
    with hudi.open_table(url) as table:
        return table.verify()


def _events(content: pa.Buffer, path: str) -> Iterator[pa.Table]:
    for block in read_log_file(content, path, lambda _: True, strict=True):
        rows: dict[str, Any]
        if isinstance(block, RowsBlock):
            stored = block.read([_KEY, ORDERING])
            rows = {KEY: stored[_KEY], ORDERING: stored[ORDERING]}
        else:
            rows = {KEY: block.rows.keys, ORDERING: block.rows.ordering}
        deleted = pa.repeat(isinstance(block, DeleteBlock), len(rows[KEY]))
        yield pa.table({KEY: rows[KEY].cast(pa.string()), ORDERING: rows[ORDERING].cast(pa.int64()), "deleted": deleted})
