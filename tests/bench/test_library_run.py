"""A peer of the ingest bench commits a checkpoint's worth of rows at a time, and its parts are the whole feed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from bench.ingest.library_run import Checkpoints, Pace
from bench.ingest.workload import BATCH_ROWS, DAYS, split
from support.events import EVENTS_SCHEMA, events


class Kept:
    """A library that keeps what it is given."""

    processes = ()

    def __init__(self) -> None:
        self.commits: list[int] = []

    def prepare(self, rows: pa.Table) -> pa.Table:
        return rows

    def upsert(self, rows: pa.Table) -> None:
        self.commits.append(rows.num_rows)


@pytest.fixture
def feed(tmp_path: Path) -> str:
    """40 batches of 100 rows."""
    rows = events(4_000, seed=1)
    days = pa.array([f"2026-02-{day:02d}" for day in range(1, DAYS + 1)])
    rows = rows.set_column(
        EVENTS_SCHEMA.get_field_index("dt"), "dt", days.take(pa.array([at * at % DAYS for at in range(4_000)]))
    )
    path = tmp_path / "feed.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, EVENTS_SCHEMA) as writer:
        writer.write_table(rows.cast(EVENTS_SCHEMA).combine_chunks(), max_chunksize=100)
    return str(path)


def test_a_checkpoint_has_what_the_last_ones_speed_makes_in_an_interval() -> None:
    pace = Pace()
    assert pace.share(1.0) == pace.share(10.0) == 4, "nothing is known yet"
    pace.took(4, 0.5)
    assert (pace.share(1.0), pace.share(10.0)) == (8, 80)
    pace.took(8, 2.0)
    assert (pace.share(1.0), pace.share(10.0)) == (4, 40)
    pace.took(1, 60.0)
    assert pace.share(1.0) == 1


def test_a_checkpoint_ends_however_many_rows_are_waiting(feed: str) -> None:
    """Rows that are taken for a checkpoint once counted as committed, so that the second checkpoint had all the rest."""
    table = Kept()
    checkpoints = Checkpoints("kept", table, pa.ipc.open_file(pa.memory_map(feed)))
    for _ in range(3):
        checkpoints.pace.took(10, 1.0)
        checkpoints.commit(1.0, 40)
    checkpoints.pace.took(39, 1.0)
    assert checkpoints.commit(1.0, 40)[0] == 1_000, "what is left"
    assert (table.commits, checkpoints.at) == ([1_000] * 4, 40)


def test_the_parts_of_a_feed_are_all_its_rows_and_no_partition_is_in_two(feed: str) -> None:
    parts = [pa.ipc.open_file(pa.memory_map(path)).read_all() for path in split(feed, 2)]
    whole = pa.ipc.open_file(pa.memory_map(feed)).read_all()
    assert pa.concat_tables(parts).sort_by("event_id").equals(whole.sort_by("event_id"))
    assert not set(parts[0]["dt"].to_pylist()) & set(parts[1]["dt"].to_pylist())
    assert all(batch.num_rows <= BATCH_ROWS for part in parts for batch in part.to_batches())
