"""`./task bench tables`: see `--help`."""

from bench.tables.command import measure, options_of, report
from bench.tables.figures import Figures, Goal
from bench.tables.other_sections import log_blocks, open_and_view, snapshot_read
from bench.tables.upserts import entrants, upserts
from bench.tables.workload import Phases

SECTIONS = {
    "upsert": "commits of many and of few rows, beside PyPaimon (and Hudi on Spark): rows per CPU-second, bytes, latency",
    "blocks": "log blocks encoded and decoded",
    "read": "snapshot reads of a table with logs, beside hudi-rs",
    "open": "a table of 2,000 commits opened and its file groups listed",
}
FULL: Phases = {"load": (1_000_000, 1), "100k": (100_000, 5), "10k": (10_000, 20), "100": (100, 1000)}
FULL_PARTITIONED: Phases = {"load": (1_000_000, 1), "100k": (100_000, 3), "10k": (10_000, 10), "100": (100, 50)}
QUICK: Phases = {"load": (200_000, 1), "100k": (100_000, 3), "10k": (10_000, 5), "100": (100, 100)}
QUICK_PARTITIONED: Phases = {"load": (200_000, 1), "100k": (100_000, 1), "10k": (10_000, 2), "100": (100, 5)}

_FLAT, _PARTITIONED = "upsert, 8 groups (PyPaimon 4)", "upsert, 28 x 8 groups (PyPaimon 28 x 4)"
GOALS = (
    *(
        Goal(f"{layout}, {text} rows >= {limit}x PyPaimon per CPU-s", section, phase, "rows/CPU-s", limit, "PyPaimon")
        for layout, section in (("8 groups", _FLAT), ("28 x 8 groups", _PARTITIONED))
        for text, phase, limit in (
            ("100 k", "100k: 100,000 rows a commit", 1.5),
            ("10 k", "10k: 10,000 rows a commit", 1.5),
            ("100", "100: 100 rows a commit", 2),
        )
    ),
    *(
        Goal(
            f"commit of 100 rows, {p}, no slower than PyPaimon's",
            _FLAT,
            "100: 100 rows a commit",
            f"ms wall, {p}",
            1.0,
            "PyPaimon",
        )
        for p in ("p50", "p99")
    ),
    Goal("commit of 100 rows, p50 <= 12 ms", _FLAT, "100: 100 rows a commit", "ms wall, p50", 12),
    Goal("flat over 1,000 commits: last 100 <= 1.2x first 100", _FLAT, "100: 100 rows a commit", "last 100 / first 100", 1.2),
    Goal("<= 60 bytes a row, loaded", _FLAT, "load: 1,000,000 rows a commit", "bytes a row", 60),
    Goal("<= 60 bytes a row, upserted in batches of 100 k", _FLAT, "100k: 100,000 rows a commit", "bytes a row", 60),
    Goal("Parquet log block encoding >= 3 M rows/CPU-s", "log blocks", "Parquet encode, 100,000 rows", "rows/CPU-s", 3e6),
    Goal("Avro log block decoding >= 2 M rows/CPU-s", "log blocks", "Avro decode, 50,000 rows", "rows/CPU-s", 2e6),
    Goal("snapshot read >= 1.5x hudi-rs per CPU-s", "snapshot read", "12 columns, at once", "rows/CPU-s", 1.5, "hudi-rs"),
    Goal("open and view of 2,000 commits <= 0.5 s", "open and view", "2,000 commits, 10 groups each", "s wall", 0.5),
)


def main() -> None:
    options = options_of(
        "tables",
        "Our tables beside PyPaimon, hudi-rs and Spark.",
        SECTIONS,
        quick="a smoke run of about a minute",
        spark="Hudi on Spark too: one round, few commits, some minutes",
    )
    figures = Figures()
    full, partitioned = (QUICK, QUICK_PARTITIONED) if options.quick else (FULL, FULL_PARTITIONED)
    contenders = entrants(spark=options.spark)
    sections = {
        "upsert": lambda: upserts(figures, full, partitioned, contenders, options.rounds),
        "blocks": lambda: log_blocks(figures, options.rounds, 5 if options.quick else 20),
        "read": lambda: snapshot_read(figures, full, options.rounds, 2 if options.quick else 5),
        "open": lambda: open_and_view(figures, options.rounds, 200 if options.quick else 2000),
    }
    measure(figures, GOALS, options, sections)
    report(figures, GOALS, options, ("pyarrow", "numpy", "hudi"), phases=full, partitioned_phases=partitioned)


if __name__ == "__main__":
    main()
