"""Tables to compact, of one file group or some: base files of so many rows and log files on top, kept under .cache/bench.

Of a log's rows 70 % have keys of the base file, 20 % are new, and 10 % repeat keys of the log before with a newer version; one
row in ten of the first kind is late. The base file is a compaction's output, as that of any older slice is.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench import CACHE, ROOT
from bench.tables.progress import say
from headgate_tables import hudi
from headgate_tables.arrow import index_array, pc
from support.events import EVENTS_SCHEMA, event_ids, events

Ints = npt.NDArray[np.int64]

_CHUNK = 500_000
_DRAWN = 500_000
"""Rows of values drawn once; keys and versions are what makes rows differ."""
_SEED = 5
_BASE_VERSION = 1000


def slice_table(base_rows: int, log_rows: Sequence[int], buckets: int = 1) -> Path:
    """The folder of a table whose slices have base files of ``base_rows`` together and logs of ``log_rows``. Built once."""
    name = f"slice-{base_rows}" if buckets == 1 else f"slices-{buckets}x{base_rows // buckets}"
    folder = CACHE / f"{name}-{hashlib.sha256(repr(list(log_rows)).encode()).hexdigest()[:6]}-{_code()}"
    if not folder.exists():
        say(f"making the table {name}")
        for stale in CACHE.glob(f"{folder.name.rpartition('-')[0]}-*"):
            shutil.rmtree(stale)
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        _build(partial, base_rows, log_rows, buckets)
        partial.rename(folder)
    return folder


def copy_of(table: Path, into: Path) -> Path:
    """The table again, its data files under second names; compacting it leaves the first as it is."""
    target = into / "table"
    for file in table.rglob("*"):
        copy = target / file.relative_to(table)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.is_file() and ".hoodie" in file.parts:
            shutil.copyfile(file, copy)
        elif file.is_file():
            os.link(file, copy)
    return target


def end_state(base_rows: int, log_rows: Sequence[int]) -> pa.Table:
    """The rows that such a table has, without any merge: of each key the largest version (equal ones have equal values)."""
    newest = _newest(base_rows, log_rows)
    return _rows(events(_DRAWN).combine_chunks(), np.arange(len(newest)), newest)


def end_totals(base_rows: int, log_rows: Sequence[int], names: Sequence[str]) -> list[int]:
    """The number of these rows, and the sum of each of the columns ``names``."""
    newest = _newest(base_rows, log_rows)
    drawn = events(_DRAWN)
    numbers = index_array(np.arange(len(newest)) % _DRAWN)
    sums = [newest.sum() if name == "version" else pc.sum(drawn[name].take(numbers)).as_py() for name in names]
    return [len(newest), *map(int, sums)]


def _newest(base_rows: int, log_rows: Sequence[int]) -> Ints:
    """int64[keys]: the largest version of each."""
    logs = list(_logs(np.random.default_rng(_SEED), base_rows, log_rows))
    newest = np.zeros(1 + max([base_rows - 1, *(int(numbers.max()) for numbers, _ in logs)]), np.int64)
    newest[:base_rows] = _BASE_VERSION
    for numbers, versions in logs:
        np.maximum.at(newest, numbers, versions)
    return newest


def _build(folder: Path, base_rows: int, log_rows: Sequence[int], buckets: int) -> None:
    table = hudi.create_table(f"file://{folder}", EVENTS_SCHEMA, record_key="event_id", ordering="version", buckets=buckets)
    table.configure({"hoodie.clean.automatic": "false"})
    drawn = events(_DRAWN).combine_chunks()
    for start in range(0, base_rows, _CHUNK):
        stop = min(start + _CHUNK, base_rows)
        table.upsert(_rows(drawn, np.arange(start, stop), np.full(stop - start, _BASE_VERSION)))
    if base_rows > _CHUNK:
        table.compact()
        _remove_old_slices(folder)
    for numbers, versions in _logs(np.random.default_rng(_SEED), base_rows, log_rows):
        with table.transaction() as transaction:
            transaction.upsert(_rows(drawn, numbers, versions))


def _remove_old_slices(folder: Path) -> None:
    """They only take space: nobody reads this table as of the past."""
    newest = max(file.stem.rpartition("_")[2] for file in folder.glob("*.parquet"))
    for file in folder.iterdir():
        if file.is_file() and not file.stem.endswith(newest) and file.name != ".hoodie_partition_metadata":
            file.unlink()


def _logs(rng: np.random.Generator, base_rows: int, log_rows: Sequence[int]) -> Iterator[tuple[Ints, Ints]]:
    known = base_rows
    before = np.arange(min(base_rows, 1000))
    for log, rows in enumerate(log_rows):
        old = rng.choice(base_rows, int(rows * 0.7), replace=False)
        fresh = np.arange(known, known + int(rows * 0.2))
        again = rng.choice(before, rows - len(old) - len(fresh))
        numbers = np.concatenate([old, fresh, again])
        versions = np.full(rows, 2000 + log)
        versions[: len(old) // 10] = 500
        before, known = numbers, known + len(fresh)
        order = rng.permutation(rows)
        yield numbers[order], versions[order]


def _rows(drawn: pa.Table, numbers: Ints, versions: Ints) -> pa.Table:
    values = drawn.take(index_array(numbers % _DRAWN))
    replaced = {"event_id": event_ids(numbers), "version": pa.array(versions.astype(np.int64))}
    return pa.table([replaced.get(name, values[name]) for name in EVENTS_SCHEMA.names], schema=EVENTS_SCHEMA)


def _code() -> str:
    log = ROOT / "lib" / "tables" / "headgate_tables" / "hudi" / "log"
    sources = [
        Path(__file__),
        log / "parquet_rows.py",
        log / "writer.py",
        log.parent / "services" / "compaction" / "base_writer.py",
    ]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:8]
