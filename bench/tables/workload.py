"""The upsert workload: 1 M rows, then batches of 100 k, 10 k and 100 rows, and the rows that must be there in the end.

Of a batch's rows 70 % have keys that were there before it (of these one in ten comes late, with a version older than the
row there), 20 % are new, and 10 % repeat a key of the same batch with a version one above or below. Everything is written as
Arrow files before any clock starts: one file a phase, one record batch a commit. The day ``dt`` hangs on the key alone, so
that a partitioned table holds the same rows.
"""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from bench import CACHE
from bench.tables.progress import say
from support.events import EVENTS_SCHEMA, event_ids, events

Phases = Mapping[str, tuple[int, int]]
"""By name: rows a commit, number of commits. The first loads the table with new keys only."""

_EXISTING, _NEW, _LATE = 0.7, 0.2, 0.1
_LOADED = 1_000_000
"""Version of the loaded rows. Late ones are below, the others above, and no two rows of a key have the same."""
_DAYS = 28


def prepare(phases: Phases) -> str:
    """Writes the phases' files unless they are cached; returns their folder."""
    name = hashlib.sha256(repr(sorted(phases.items())).encode() + Path(__file__).read_bytes()).hexdigest()[:12]
    folder = CACHE / f"workload-{name}"
    if not folder.exists():
        say("making the rows of the workload")
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _write_phases(partial, phases)
        partial.rename(folder)
    return str(folder)


def oracle(folder: str, phases: Phases) -> str:
    """An Arrow file with the end state after the first commits of each phase, as many as ``phases`` says, sorted by key.

    DuckDB says what that is: of each key the row with the largest version.
    """
    path = Path(folder) / f"oracle-{'-'.join(str(commits) for _, commits in phases.values())}.arrow"
    if not path.exists():
        say("making the oracle")
        handed_in = pa.Table.from_batches(  # noqa: F841 - DuckDB finds it by its name
            batches.get_batch(number)
            for phase, (_, commits) in phases.items()
            for batches in [pa.ipc.open_file(pa.memory_map(f"{folder}/{phase}.arrow"))]
            for number in range(commits)
        )
        connection = duckdb.connect()
        connection.execute("SET enable_progress_bar = false")
        query = "FROM handed_in QUALIFY row_number() OVER (PARTITION BY event_id ORDER BY version DESC) = 1 ORDER BY event_id"
        _write(path, [connection.sql(query).to_arrow_table().cast(EVENTS_SCHEMA)])
    return str(path)


def _write_phases(folder: Path, phases: Phases) -> None:
    rng = np.random.default_rng(3)
    known = 0
    commit = 0
    for phase, (rows, commits) in phases.items():
        tables = []
        for _ in range(commits):
            if commit == 0:
                tables.append(_rows(np.arange(rows), np.full(rows, _LOADED), seed=0))
                known = rows
            else:
                numbers, versions, known = _batch(rng, rows, known, 10 * commit)
                tables.append(_rows(numbers, versions, seed=commit))
            commit += 1
        _write(folder / f"{phase}.arrow", tables)


def _batch(rng: np.random.Generator, rows: int, known: int, late: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Numbers and versions of one batch's keys, and how many keys there are after it."""
    old = rng.choice(known, int(rows * _EXISTING), replace=False)
    fresh = np.arange(known, known + int(rows * _NEW))
    versions = np.full(len(old) + len(fresh), _LOADED + late)
    versions[: int(len(old) * _LATE)] = late
    numbers = np.concatenate([old, fresh])
    again = rng.choice(len(numbers), rows - len(numbers), replace=False)
    numbers = np.concatenate([numbers, numbers[again]])
    versions = np.concatenate([versions, versions[again] + rng.choice([-1, 1], len(again))])
    order = rng.permutation(rows)
    return numbers[order], versions[order], known + len(fresh)


def _rows(numbers: np.ndarray, versions: np.ndarray, seed: int) -> pa.Table:
    days = pa.array([f"2026-02-{day:02d}" for day in range(1, _DAYS + 1)]).take(pa.array(numbers * 7919 // 13 % _DAYS))
    replaced = {"event_id": event_ids(numbers), "version": pa.array(versions, pa.int64()), "dt": days}
    table = events(len(numbers), seed=seed)
    return pa.table([replaced.get(name, table[name]) for name in EVENTS_SCHEMA.names], schema=EVENTS_SCHEMA).combine_chunks()


def _write(path: Path, tables: list[pa.Table]) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, EVENTS_SCHEMA) as writer:
        for table in tables:
            writer.write_table(table, max_chunksize=table.num_rows)
