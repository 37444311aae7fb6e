"""Rows to send: the 12-column event in 8 days, 30 % of them updates of earlier keys, uniformly or on a Zipf law.

``version`` is the number of the row in the whole feed, so of each key the last row wins, whoever sends it when. Everything is
written as one Arrow file before any clock starts; each record batch is what a client sends at once.
"""

import hashlib
import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from bench import CACHE
from bench.tables.progress import say
from headgate_tables.arrow import pc
from support.events import EVENTS_SCHEMA, event_ids, events

BATCH_ROWS = 16_384
UPDATES = 0.3
DAYS = 8
_ZIPF = 1.2


def prepare(rows: int, law: str) -> str:
    """Path of the feed, an Arrow file. ``law``: how the updated keys are drawn, ``uniform`` or ``zipf``."""
    return kept(f"{law}-{rows}", _batches(rows, law), __file__)


def kept(name: str, batches: Iterable[pa.RecordBatch], maker: str) -> str:
    """Path of an Arrow file with these batches, at least one, which are asked for only when the file is not there.

    ``maker``: the file of the code that makes them. Another ``name`` or other code makes another feed.
    """
    path = CACHE / f"feed-{name}-{hashlib.sha256(Path(maker).read_bytes()).hexdigest()[:8]}.arrow"
    if not path.exists():
        say(f"making the feed {path.stem}")
        rest = iter(batches)
        first = next(rest)
        with _written(path, first.schema) as writer:
            for batch in itertools.chain([first], rest):
                writer.write_batch(batch)
    return str(path)


def split(feed: str, parts: int) -> list[str]:
    """Paths of as many feeds: the rows of ``feed`` by partition, in their order, in batches of the same size."""
    paths = [Path(feed).with_suffix(f".{part}-of-{parts}.arrow") for part in range(parts)]
    for part, path in enumerate(paths):
        if not path.exists():
            say(f"making part {part + 1} of {parts} of {Path(feed).name}")
            rows = pa.ipc.open_file(pa.memory_map(feed)).read_all()
            days = pa.array([f"2026-02-{day:02d}" for day in range(1, DAYS + 1) if day % parts == part])
            with _written(path, EVENTS_SCHEMA) as writer:
                writer.write_table(rows.filter(pc.is_in(rows["dt"], days)).combine_chunks(), max_chunksize=BATCH_ROWS)
    return [str(path) for path in paths]


@contextmanager
def _written(path: Path, schema: pa.Schema) -> Iterator[pa.ipc.RecordBatchFileWriter]:
    """Under another name until it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with pa.OSFile(str(partial), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        yield writer
    partial.rename(path)


def oracle(feed: str) -> str:
    """Path of an Arrow file with the end state, by DuckDB: of each key the row with the largest version, by key."""
    path = Path(feed).with_suffix(".oracle")
    if not path.exists():
        say(f"making the oracle of {Path(feed).name}")
        handed_in = pa.ipc.open_file(pa.memory_map(feed)).read_all()  # noqa: F841 - DuckDB finds it by its name
        connection = duckdb.connect()
        connection.execute("SET enable_progress_bar = false")
        query = "FROM handed_in QUALIFY row_number() OVER (PARTITION BY event_id ORDER BY version DESC) = 1 ORDER BY event_id"
        end = connection.sql(query).to_arrow_table().cast(EVENTS_SCHEMA)
        with _written(path, EVENTS_SCHEMA) as writer:
            writer.write_table(end)
    return str(path)


def _batches(rows: int, law: str) -> Iterator[pa.RecordBatch]:
    known = 0
    for start in range(0, rows, BATCH_ROWS):
        batch, known = _batch(start, min(BATCH_ROWS, rows - start), known, law)
        yield batch


def _batch(start: int, rows: int, known: int, law: str) -> tuple[pa.RecordBatch, int]:
    """One batch, and how many keys there are after it."""
    rng = np.random.default_rng((5, start))
    updates = int(rows * UPDATES) if known else 0
    old = _drawn(rng, known, updates, law)
    numbers = np.concatenate([old, np.arange(known, known + rows - updates)])
    order = rng.permutation(rows)
    numbers = numbers[order]
    days = pa.array([f"2026-02-{day:02d}" for day in range(1, DAYS + 1)]).take(pa.array(numbers * 7919 // 13 % DAYS))
    versions = pa.array(np.arange(start + 1, start + rows + 1), pa.int64())
    replaced = {"event_id": event_ids(numbers), "version": versions, "dt": days}
    table = events(rows, seed=start)
    table = pa.table([replaced.get(name, table[name]) for name in EVENTS_SCHEMA.names], schema=EVENTS_SCHEMA).combine_chunks()
    return table.to_batches()[0], known + rows - updates


def _drawn(rng: np.random.Generator, known: int, count: int, law: str) -> np.ndarray:
    if law == "uniform":
        return rng.integers(0, known, count) if count else np.empty(0, np.int64)
    # The hottest keys are the youngest, as in a feed of orders that change while they are open.
    return known - 1 - (rng.zipf(_ZIPF, count) - 1) % known if count else np.empty(0, np.int64)
