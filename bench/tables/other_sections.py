"""Log blocks alone, snapshot reads, and opening a long timeline: each measurement in a new process, contenders in turn."""

from pathlib import Path
from statistics import median

from bench.tables.child import run_child
from bench.tables.figures import OURS, Figures
from bench.tables.fixtures import long_table, merged_table
from bench.tables.reading import fill_page_cache
from bench.tables.workload import Phases, oracle, prepare

LOG_BATCHES = 3
GROUPS = 10
_READ = "bench.tables.reading:snapshot"


def log_blocks(figures: Figures, rounds: int, times: int) -> None:
    """17-column rows to bytes and back. Peers: pyarrow's own defaults, and fastavro row by row."""
    kinds = [("encode_parquet", f"Parquet encode, {rows:,} rows", rows, "pyarrow") for rows in (100_000, 12_500, 1_250)]
    kinds.append(("decode_avro", "Avro decode, 50,000 rows", 50_000, "fastavro"))
    for _ in range(rounds):
        for function, figure, rows, peer in kinds:
            for contender in (OURS, peer):
                repeated = 2 if contender == "fastavro" else times
                answer = run_child(f"bench.tables.blocks:{function}", contender=contender, rows=rows, times=repeated)
                figures.add("log blocks", figure, "rows/CPU-s", contender, answer["rows_per_cpu_s"], more_is_better=True)
                if function == "encode_parquet":
                    figures.add("log blocks", figure, "bytes a row", contender, answer["bytes_per_row"])


def snapshot_read(figures: Figures, phases: Phases, rounds: int, times: int) -> None:
    """A loaded table with three batches of 100 k rows in log files. Rows per second are stored rows, base and log."""
    workload = prepare(phases)
    built = {"load": (phases["load"][0], 1), "100k": (phases["100k"][0], LOG_BATCHES)}
    stored = sum(rows * commits for rows, commits in built.values())
    folder = merged_table(workload, LOG_BATCHES)
    kinds = {"table": "12 columns, at once", "stream": "12 columns, as a stream", "few": "3 columns, at once"}
    for contender in (OURS, "hudi-rs"):
        for how in kinds:
            answer = run_child(_READ, contender=contender, folder=folder, how=how, times=0, oracle=oracle(workload, built))
            if answer["differences"]:
                raise AssertionError(f"snapshot read by {contender}, {how}: not what the oracle says: {answer['differences']}")
    for _ in range(rounds):
        for how, figure in kinds.items():
            for contender in (OURS, "hudi-rs"):
                answer = run_child(_READ, contender=contender, folder=folder, how=how, times=times, oracle=None)
                speed = stored / median(answer["cpus"])
                figures.add("snapshot read", figure, "rows/CPU-s", contender, speed, more_is_better=True)
                figures.add("snapshot read", figure, "ms wall", contender, 1000 * median(answer["walls"]))
                figures.add("snapshot read", figure, "MB peak memory", contender, answer["peak"] / 1e6)


def open_and_view(figures: Figures, rounds: int, commits: int) -> None:
    """From nothing but imports to the newest slice of every file group."""
    folder = long_table(commits, GROUPS)
    fill_page_cache(Path(folder) / ".hoodie")
    figure = f"{commits:,} commits, {GROUPS} groups each"
    for _ in range(rounds):
        for contender in (OURS, "hudi-rs"):
            answer = run_child("bench.tables.reading:opening", contender=contender, folder=folder)
            if answer["groups"] != GROUPS:
                raise AssertionError(f"{contender} sees {answer['groups']} of {GROUPS} file groups")
            figures.add("open and view", figure, "s wall", contender, answer["wall"])
            figures.add("open and view", figure, "s CPU", contender, answer["cpu"])
            figures.add("open and view", figure, "MB peak memory", contender, answer["peak"] / 1e6)
