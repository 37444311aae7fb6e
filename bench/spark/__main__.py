"""`./task bench spark`: see `--help`."""

import os
import sys

from bench.spark import sections
from bench.tables.command import measure, options_of, report
from bench.tables.figures import Figures

SECTIONS = {
    "load": "a Parquet file of 1, 5 and 20 M rows of TPC-H's lineitem into a new table of 8 buckets, by bulk_insert of each",
    "sort": "5 M rows sorted by two columns: ours by a compaction in one process, Hudi's by run_clustering (of a table without\n"
    "bucket index, as Hudi clusters no other)",
    "read": "sums over four columns of a table, and over all, by both readers: base files alone, and a tenth of the rows\n"
    "in log files",
    "stream": "batches of 1,000 rows, a commit each, as foreachBatch writes them: seconds of a commit",
}


def main() -> None:
    options = options_of(
        "spark",
        "What Spark does for Headgate's tables, beside Hudi 1.2 on PySpark 3.5, each in a warm session of two threads.",
        SECTIONS,
        quick="100 k rows, one round",
        spark="no effect here: Hudi on Spark is always the peer",
    )
    if "HEADGATE_SPARK_PYTHON" not in os.environ:
        sys.exit("This bench needs Java 17 on PATH.")
    figures = Figures()
    sizes = [100_000] if options.quick else [1_000_000, 5_000_000, 20_000_000]
    size = 100_000 if options.quick else 5_000_000
    measured = {
        "load": lambda: sections.load(figures, sizes, options.rounds),
        "sort": lambda: sections.sort(figures, size, options.rounds),
        "read": lambda: sections.read(figures, size, options.rounds),
        "stream": lambda: sections.stream(figures, options.rounds),
    }
    measure(figures, sections.GOALS, options, measured)
    report(figures, sections.GOALS, options, ("pyarrow", "numpy", "hudi"))


if __name__ == "__main__":
    main()
