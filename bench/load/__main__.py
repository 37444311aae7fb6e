"""`./task bench load`: see `--help`."""

from bench.load import rows_in_a_loop, whole_files
from bench.tables.command import measure, options_of, report
from bench.tables.figures import Figures

SECTIONS = {
    "csv": "a CSV file of 1 GB through `headgate load` into a cluster of this machine, beside DuckDB's COPY of it to\n"
    "Parquet and PyPaimon's write of it: rows/s, CPU of all processes, most memory of the loading process",
    "parquet": "the same with a Parquet file of 1 GB, which holds more rows",
    "rows": "a row a call, `ch.upsert(row)`, as dict, tuple and dataclass, by threads and by coroutines, and DuckDB's INSERT",
}
MEGABYTES, QUICK_MEGABYTES = 1_000, 20
BATCHES, QUICK_BATCHES = 16, 3


def main() -> None:
    options = options_of(
        "load",
        "Files and single rows into a cluster. It wants a quiet machine and 4 GB of free memory, and takes less than 15 minutes\n"
        "with 2 cores; the first run makes the files, and needs 4 GB in .cache.",
        SECTIONS,
        quick=f"files of {QUICK_MEGABYTES} MB and few rows: two minutes, to see that all of it works",
        spark="no effect here: Hudi on Spark loads no files without a program",
    )
    figures = Figures()
    megabytes = QUICK_MEGABYTES if options.quick else MEGABYTES
    batches = QUICK_BATCHES if options.quick else BATCHES
    goals = (*whole_files.GOALS, *rows_in_a_loop.GOALS)
    sections = {
        "csv": lambda: whole_files.whole_file(figures, "csv", megabytes, options.rounds),
        "parquet": lambda: whole_files.whole_file(figures, "parquet", megabytes, options.rounds),
        "rows": lambda: rows_in_a_loop.rows_in_a_loop(figures, batches, options.rounds),
    }
    measure(figures, goals, options, sections)
    report(figures, goals, options, ("pyarrow", "duckdb", "hudi"))


if __name__ == "__main__":
    main()
