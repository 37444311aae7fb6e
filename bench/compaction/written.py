"""The section on bytes written: the runs of ``amplification`` and what is reported of them."""

from bench.compaction.amplification import LAG
from bench.ingest.workload import oracle, prepare
from bench.tables.child import run_child
from bench.tables.figures import OURS, Figures
from bench.tables.scratch import scratch_folder

SECTION = f"bytes written over 200 commits, 8 slices, compactions end {LAG} commits after their plan"
FROM_EMPTY = "begins empty"
LOADED = "half of the rows loaded before"
MINOR = "0.75"
WITH_MINOR = f"{{}}, minor compactions up to {MINOR} log bytes per base byte"
PER_BYTE = "bytes per log byte"
COMMITS = 200


def bytes_written(figures: Figures, *, quick: bool) -> None:
    """A table that begins empty, and one whose base files are large before the first commit."""
    rows = 1_000_000 if quick else 8_000_000
    for figure, loaded in ((FROM_EMPTY, 0), (LOADED, rows // 2)):
        _run(figures, figure, rows, loaded, "0")
        _run(figures, WITH_MINOR.format(figure), rows, loaded, MINOR)


def _run(figures: Figures, figure: str, rows: int, loaded: int, minor: str) -> None:
    feed = prepare(rows, "uniform")
    with scratch_folder("written") as folder:
        arguments = {"folder": str(folder / "table"), "feed": feed, "oracle": oracle(feed), "commits": COMMITS, "loaded": loaded}
        found = run_child("bench.compaction.amplification:run", **arguments, minor=minor)
    figures.add(SECTION, figure, PER_BYTE, OURS, (found["logs"] + found["rewritten"]) / found["logs"])
    figures.add(
        SECTION, figure, "bytes per byte of Arrow data handed in", OURS, (found["logs"] + found["rewritten"]) / found["arrow"]
    )
    figures.add(SECTION, figure, "bytes per log byte, timeline and commit log too", OURS, found["all"] / found["logs"])
    figures.add(SECTION, figure, "log files of the worst slice", OURS, found["most_logs"])
    figures.add(SECTION, figure, "compactions", OURS, found["plans"])
    figures.add(SECTION, figure, "% of CPU that is compaction", OURS, 100 * found["merge_cpu"] / found["cpu"])
