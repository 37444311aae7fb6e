"""`./task bench compaction`: see `--help`."""

from bench.compaction import offline, under_ingest, written
from bench.tables.command import measure, options_of, report
from bench.tables.figures import Figures, Goal

SECTIONS = {
    "rate": "one table of 8 slices (1 M base rows, 300 k rows in 20 commits), compacted by us and by Hudi on Spark (--spark),\n"
    "each in a warm process, by us also in a new one, and only read and written again by pyarrow: CPU of all\n"
    "threads. hudi-rs reads both outputs, which must equal what was written",
    "memory": "one slice of 1 GB and a small one, each in a process of its own: the most resident memory of the whole process",
    "written": "200 commits with 30 % updates, compacted as it goes with default settings, and with minor compactions: bytes of\n"
    "all log and base files that were created, per log byte",
    "ingest": "the cluster takes 24 M rows, 30 % updates, into 8 x 8 buckets, with and without a compactor: rows per CPU-second\n"
    "of all processes, until every compaction that was planned has ended",
    "freshness": "the same cluster at steady rates, with and without a compactor: seconds from send to queryable",
}
GOALS = (
    Goal("base rows per CPU-s >= 1.25x pyarrow's rewrite", offline.RATE, "compaction", offline.PER_CPU, 1.25, offline.REWRITTEN),
    Goal("base rows per CPU-s >= 10x Hudi on Spark", offline.RATE, "compaction", offline.PER_CPU, 10, offline.SPARK),
    Goal("peak memory for a 1 GB slice <= 512 MiB", offline.MEMORY, offline.name_of_slice(), "MiB peak", 512),
    Goal("ingest with compaction >= 75 % of the rate without", under_ingest.THROUGHPUT, "all rows", under_ingest.SHARE, 75),
    *(
        Goal(
            f"queryable p99 at {under_ingest.name_of_rate(rate)} <= 1.3x that without",
            under_ingest.FRESHNESS,
            under_ingest.name_of_rate(rate),
            under_ingest.TIMES,
            1.3,
        )
        for rate in under_ingest.RATES
    ),
    *(
        Goal(f"bytes written per log byte <= 3, {case}", written.SECTION, case, written.PER_BYTE, 3)
        for plain in (written.FROM_EMPTY, written.LOADED)
        for case in (plain, written.WITH_MINOR.format(plain))
    ),
)


def main() -> None:
    options = options_of(
        "compaction",
        "Compaction by itself, beside Hudi on Spark, and under ingest.",
        SECTIONS,
        quick="a smoke run of some minutes",
        spark="Hudi on Spark too, on the same files",
    )
    figures = Figures()
    sections = {
        "rate": lambda: offline.rate(figures, options.rounds, spark=options.spark),
        "memory": lambda: offline.memory(figures, quick=options.quick),
        "written": lambda: written.bytes_written(figures, quick=options.quick),
        "ingest": lambda: under_ingest.throughput(figures, 1_000_000 if options.quick else 24_000_000, options.rounds),
        "freshness": lambda: under_ingest.freshness(figures, options.rounds, 10 if options.quick else 60),
    }
    measure(figures, GOALS, options, sections)
    report(figures, GOALS, options, ("pyarrow", "numpy", "hudi"))


if __name__ == "__main__":
    main()
