"""Rows of other shapes through the cluster: many columns, long texts, nested values; and as one file of pyarrow."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hudi import HudiReadOptions, HudiTable

from bench.compaction.under_ingest import data_bytes
from bench.ingest.sections import WARM_UP, cluster_with_table, processes_of
from bench.ingest.workload import kept
from bench.tables.child import run_child
from bench.tables.figures import OURS, Figures
from bench.tables.scratch import scratch_folder
from bench.tables.usage import Moment
from headgate_tables.arrow import Array

SECTION: Final = "rows of other shapes, 1s checkpoints, 1 writer"
PYARROW: Final = "pyarrow, one file"
PYARROW_ZSTD: Final = "pyarrow, one file, zstd"
Codec = Literal["snappy", "zstd"]
CODECS: Final[dict[str, Codec]] = {PYARROW: "snappy", PYARROW_ZSTD: "zstd"}
_PER_CPU, _BYTES = "rows/CPU-s", "bytes a row"
_BATCHES: Final = 150
_TEXT_BYTES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Shape:
    """``values``: columns of that many rows, beside the key; ``batch_rows``: about as many bytes a batch for each shape."""

    values: Callable[[np.random.Generator, int], dict[str, Array]]
    batch_rows: int


def _wide(random: np.random.Generator, rows: int) -> dict[str, Array]:
    """Numbers, fractions and words in turn."""
    kinds = (_numbers, _fractions, _words)
    return {f"column_{number}": kinds[number % 3](random, rows) for number in range(99)}


def _long(random: np.random.Generator, rows: int) -> dict[str, Array]:
    """Hexadecimal digits, which compress to half."""
    size = rows * _TEXT_BYTES
    digits = random.bytes(size // 2).hex().encode()
    offsets = np.arange(0, size + 1, _TEXT_BYTES, dtype=np.int32)
    return {"text": pa.StringArray.from_buffers(rows, pa.py_buffer(offsets.tobytes()), pa.py_buffer(digits))}


def _nested(random: np.random.Generator, rows: int) -> dict[str, Array]:
    """A struct with a list of structs, three of them a row, each with a list of words."""
    words = _lists(_words(random, 6 * rows), 2)
    items = pa.StructArray.from_arrays([_numbers(random, 3 * rows), words], ["number", "words"])
    return {"document": pa.StructArray.from_arrays([_lists(items, 3), _fractions(random, rows)], ["items", "weight"])}


def _lists(values: Array, length: int) -> Array:
    offsets = pa.array(np.arange(0, len(values) + 1, length), pa.int32())
    listed: Array = pa.ListArray.from_arrays(offsets, values)
    return listed


def _numbers(random: np.random.Generator, rows: int) -> Array:
    return pa.array(random.integers(0, 10**9, rows))


def _fractions(random: np.random.Generator, rows: int) -> Array:
    return pa.array(random.random(rows))


def _words(random: np.random.Generator, rows: int) -> Array:
    return pa.DictionaryArray.from_arrays(
        random.integers(0, 5000, rows), [f"word {number}" for number in range(5000)]
    ).dictionary_decode()


SHAPES: Final = {
    "100 columns": Shape(_wide, 2000),
    "texts of 10 kB": Shape(_long, 150),
    "structs and lists, three levels": Shape(_nested, 8000),
}


def shapes(figures: Figures, rounds: int) -> None:
    """Rows per CPU-second of the cluster with its client, and of pyarrow; they take turns, as the machine's speed may drift."""
    figures.note(
        SECTION,
        f"{PYARROW}: pyarrow.parquet.write_table with its defaults, no keys, no server, nothing durable. With zstd, the codec of "
        "our files, too, for about as few bytes.",
    )
    for _ in range(rounds):
        for name, shape in SHAPES.items():
            feed = prepare(shape)
            found = {OURS: _through_cluster(feed)}
            for who, codec in CODECS.items():
                found[who] = run_child(f"{__name__}:by_pyarrow", feed=feed, codec=codec)
            for who, (rate, size) in found.items():
                figures.add(SECTION, name, _PER_CPU, who, rate, more_is_better=True)
                figures.add(SECTION, name, _BYTES, who, size)


def prepare(shape: Shape) -> str:
    """Path of the feed, an Arrow file, in batches as a client sends them."""
    count = WARM_UP + _BATCHES
    return kept(f"{shape.values.__name__.strip('_')}-{count}x{shape.batch_rows}", _batches(shape, count), __file__)


def _batches(shape: Shape, count: int) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(1)
    for number in range(count):
        yield _batch(shape, random, number)


def _batch(shape: Shape, random: np.random.Generator, number: int) -> pa.RecordBatch:
    ids = pa.array(np.arange(number * shape.batch_rows, (number + 1) * shape.batch_rows))
    return pa.RecordBatch.from_pydict({"id": ids, **shape.values(random, shape.batch_rows)})


def _through_cluster(feed: str) -> tuple[float, float]:
    """Rows per CPU-second and bytes a row, once hudi-rs, which shares no code with us, reads what was sent."""
    schema = pa.ipc.open_file(pa.memory_map(feed)).schema
    with cluster_with_table("1s", 1, shaped=schema) as (cluster, url):
        arguments = {"address": cluster.address, "table": "events", "feed": feed, "channels": 2}
        used = run_child("bench.ingest.clients:load", warm_up=WARM_UP, processes=processes_of(cluster), **arguments)
        size = sum(data_bytes(Path(url.removeprefix("file://"))))
        found = pa.Table.from_batches(HudiTable(url).read(HudiReadOptions(projection=schema.names)))
    if found.sort_by("id").cast(schema).combine_chunks() != pa.ipc.open_file(pa.memory_map(feed)).read_all().combine_chunks():
        raise AssertionError(f"the table is not what was sent: {Path(feed).name}")
    return used["rows"] / used["cpu"], size / found.num_rows


def by_pyarrow(feed: str, codec: Codec) -> tuple[float, float]:
    """Rows per CPU-second of writing the rows behind the warm-up as one file, and its bytes for each row."""
    reader = pa.ipc.open_file(pa.memory_map(feed))
    batches: Sequence[pa.RecordBatch] = [reader.get_batch(number) for number in range(reader.num_record_batches)]
    with scratch_folder("pyarrow") as folder:
        pq.write_table(pa.Table.from_batches(batches[:WARM_UP]), folder / "warm-up.parquet", compression=codec)
        rows = pa.Table.from_batches(batches[WARM_UP:])
        before = Moment.now()
        pq.write_table(rows, folder / "rows.parquet", compression=codec)
        rate = rows.num_rows / (Moment.now() - before).cpu
        return rate, (folder / "rows.parquet").stat().st_size / rows.num_rows
