"""One slice, one operation: from the plan to the commit, in a process that has only done its imports and a small compaction."""

from bench.compaction.slices import copy_of
from bench.tables.child import run_child
from bench.tables.figures import OURS, Figures
from bench.tables.scratch import scratch_folder

SECTION = "one operation, 12 columns"
BASE_ROWS_PER_CPU = "base rows/CPU-s"
PEAK = "MiB peak memory"
TENTH = "1 M rows, 5 logs of 20 k"
THIRD = "1 M rows, 20 logs of 15 k"
LARGE = "1 GB: 15 M rows, 20 logs of 300 k"
ONE_LOG = "1 M rows, one log of 4 M (200 MB)"

_SLICES: dict[str, tuple[int, list[int]]] = {
    TENTH: (1_000_000, [20_000] * 5),
    THIRD: (1_000_000, [15_000] * 20),
    LARGE: (15_000_000, [300_000] * 20),
    ONE_LOG: (1_000_000, [4_000_000]),
}
_QUICK = (TENTH, THIRD)
_CHILD = "bench.compaction.one_operation"


def one_operation(figures: Figures, rounds: int, *, quick: bool) -> None:
    """Every slice is compacted once with a check of its rows by hudi-rs, and then ``rounds`` times."""
    for name, (base_rows, log_rows) in _SLICES.items():
        if quick and name not in _QUICK:
            continue
        folder = run_child(f"{_CHILD}:build", base_rows=base_rows, log_rows=log_rows)
        _check(folder, name)
        for _ in range(rounds):
            with scratch_folder("compaction") as scratch:
                answer = run_child(f"{_CHILD}:compact", folder=str(copy_of(folder, scratch)), warm_up=str(scratch / "warm"))
            figures.add(SECTION, name, BASE_ROWS_PER_CPU, OURS, base_rows / answer["cpu"], more_is_better=True)
            figures.add(SECTION, name, "input MB/CPU-s", OURS, answer["input_bytes"] / 1e6 / answer["cpu"], more_is_better=True)
            figures.add(SECTION, name, "s wall", OURS, answer["wall"])
            figures.add(SECTION, name, PEAK, OURS, answer["peak"] / 2**20)
            figures.add(SECTION, name, "bytes a row", OURS, answer["bytes"] / answer["rows"])


def _check(folder: str, name: str) -> None:
    """Our reader of the slice and hudi-rs of the compacted one have to agree."""
    with scratch_folder("compaction") as scratch:
        copy = copy_of(folder, scratch)
        run_child(f"{_CHILD}:compact", folder=str(copy), warm_up=str(scratch / "warm"))
        before = run_child(f"{_CHILD}:totals", contender=OURS, folder=folder)
        after = run_child(f"{_CHILD}:totals", contender="hudi-rs", folder=str(copy))
    if before != after:
        raise AssertionError(f"{name}: {before} before the compaction, {after} after it")
