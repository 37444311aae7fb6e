"""Compaction by itself: many slices beside Hudi on Spark, and one large slice for its memory. Every output is read back."""

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from hudi import HudiReadOptions, HudiTable

from bench import CACHE
from bench.compaction.slices import copy_of, end_state
from bench.tables.child import run_child
from bench.tables.compare import differences
from bench.tables.figures import OURS, Figures
from bench.tables.scratch import scratch_folder
from headgate_tables import hudi
from support.events import EVENTS_SCHEMA

SPARK = "Hudi on Spark"
REWRITTEN = "pyarrow, no merge"
BUCKETS = 8
BASE_ROWS = 1_000_000
LOG_ROWS = [15_000] * 20
"""As many delta commits as the default makes a slice due with."""
RATE = "8 slices, 1 M base rows and 300 k in 20 logs each"
MEMORY = "one slice"
_GIB_SLICE = (15_500_000, [290_000] * 20)
_SMALL_SLICE = (1_000_000, LOG_ROWS)
PER_CPU = "base rows/CPU-s"
_WHOLE_TABLE = "bench.compaction.whole_table"
_OPERATION = "bench.compaction.one_operation"


def rate(figures: Figures, checkpoints: int, *, spark: bool) -> None:
    """The same files compacted by us, and by Hudi on Spark in one warm session."""
    table = Path(run_child(f"{_OPERATION}:build", base_rows=BASE_ROWS, log_rows=LOG_ROWS, buckets=BUCKETS))
    with scratch_folder("compaction") as folder:
        oracle = _written(end_state(BASE_ROWS, LOG_ROWS), folder / "oracle.arrow")
        for number in range(checkpoints):
            cold = _compacted(table, folder / f"cold-{number}", oracle)
            with_imports = BASE_ROWS / cold["process_cpu"]
            figures.add(RATE, "cold process and its imports", PER_CPU, OURS, with_imports, more_is_better=True)
            warm_up = copy_of(table, folder / f"warm-up-{number}")
            used = _compacted(table, folder / f"ours-{number}", oracle, warm_up=str(warm_up))
            _add(figures, OURS, used["cpu"], used["wall"], used["peak"])
            again = run_child(f"{_WHOLE_TABLE}:rewrite", folder=str(copy_of(table, folder / f"rewritten-{number}")))
            _add(figures, REWRITTEN, again["cpu"], again["wall"], again["peak"])
        if spark:
            _spark(figures, table, folder, checkpoints, oracle)


def _compacted(table: Path, folder: Path, oracle: str, **how: str) -> dict[str, float]:
    """What it took to compact a copy of the table in ``folder``; ``how``: as ``whole_table.compact`` has it."""
    copy = copy_of(table, folder)
    used: dict[str, float] = run_child(f"{_WHOLE_TABLE}:compact", folder=str(copy), **how)
    check(copy, oracle)
    return used


def _spark(figures: Figures, table: Path, folder: Path, checkpoints: int, oracle: str) -> None:
    warm_up = [str(copy_of(table, folder / "warm-up"))]
    copies = [copy_of(table, folder / f"spark-{number}") for number in range(checkpoints)]
    python = os.environ["HEADGATE_SPARK_PYTHON"]
    tables = [str(copy) for copy in copies]
    used = run_child("bench.compaction.by_spark:compact", python, warm_up=warm_up, tables=tables, buckets=BUCKETS)
    for copy, cpu, wall in zip(copies, used["cpu"], used["wall"], strict=True):
        check(copy, oracle)
        _add(figures, SPARK, cpu, wall, used["peak"])


def _add(figures: Figures, contender: str, cpu: float, wall: float, peak: float) -> None:
    figures.add(RATE, "compaction", PER_CPU, contender, BASE_ROWS / cpu, more_is_better=True)
    figures.add(RATE, "compaction", "base rows/s", contender, BASE_ROWS / wall, more_is_better=True)
    figures.add(RATE, "compaction", "MiB peak", contender, peak / 2**20)


def check(folder: Path, oracle: str) -> None:
    """Raises AssertionError unless every newest slice is a base file alone and hudi-rs reads the rows of ``oracle`` from them."""
    with hudi.open_table(f"file://{folder}") as table:
        newest = [group.slices()[-1] for group in table.file_groups()]
    left = [each.file_id for each in newest if each.logs or not each.base]
    if left or not newest:
        raise AssertionError(f"not compacted: {left} of {len(newest)} slices in {folder}")
    found = pa.Table.from_batches(HudiTable(f"file://{folder}").read(HudiReadOptions(projection=EVENTS_SCHEMA.names)))
    if wrong := differences(found, oracle):
        raise AssertionError(f"the compacted table {folder} is not what it was: {wrong}")


def memory(figures: Figures, *, quick: bool) -> None:
    """One process, one operation; a small slice beside the large one shows what hangs on the size."""
    for base_rows, log_rows in (_SMALL_SLICE,) if quick else (_SMALL_SLICE, _GIB_SLICE):
        _one_slice(figures, base_rows, log_rows)


def _one_slice(figures: Figures, base_rows: int, log_rows: Sequence[int]) -> None:
    table = Path(run_child(f"{_OPERATION}:build", base_rows=base_rows, log_rows=log_rows))
    with scratch_folder("slice") as folder:
        copy = copy_of(table, folder)
        used = run_child(f"{_OPERATION}:compact", folder=str(copy))
        found = run_child(f"{_OPERATION}:totals", folder=str(copy))
    wanted = run_child(f"{_OPERATION}:wanted", base_rows=base_rows, log_rows=log_rows)
    if found != wanted or used["rows"] != wanted[0]:
        raise AssertionError(f"rows and sums are {found}, they were {wanted}")
    figure = name_of_slice(base_rows)
    figures.add(MEMORY, figure, "MiB peak", OURS, used["peak"] / 2**20)
    figures.add(MEMORY, figure, "MB of input", OURS, used["input_bytes"] / 1e6)
    figures.add(MEMORY, figure, PER_CPU, OURS, base_rows / used["cpu"], more_is_better=True)


def name_of_slice(base_rows: int = _GIB_SLICE[0]) -> str:
    """As it stands in the report."""
    return f"{base_rows / 1e6:g} M base rows, 20 logs"


def _written(rows: pa.Table, path: Path) -> str:
    CACHE.mkdir(parents=True, exist_ok=True)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, EVENTS_SCHEMA) as writer:
        writer.write_table(rows.sort_by("event_id"))
    return str(path)
