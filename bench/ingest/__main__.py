"""`./task bench ingest`: see `--help`."""

from bench.ingest import sections
from bench.ingest.evolving import CASE as EVOLVING
from bench.ingest.evolving import PRICE as EVOLUTION
from bench.ingest.evolving import STEADY, evolving
from bench.ingest.secured import BARE, PRICE, secured
from bench.ingest.secured import CASE as SECURED
from bench.ingest.shapes import PYARROW_ZSTD, SHAPES, shapes
from bench.ingest.shapes import SECTION as SHAPED
from bench.ingest.small_sends import GOALS as SMALL_SENDS
from bench.ingest.small_sends import small_sends
from bench.tables.command import measure, options_of, report
from bench.tables.figures import Figures, Goal

SECTIONS = {
    "throughput": "8 M rows (16 M in checkpoints of 10 s) as fast as they are taken, and PyPaimon with the same rows;\n"
    "Hudi on Spark with fewer",
    "freshness": "10 k rows/s: seconds from send to durable and to queryable",
    "small": "100 channels with calls of 1, 100 and 1,000 rows, as record batches and as dicts: CPU of each process",
    "overload": "32 channels against one writer: its memory",
    "recovery": "from kill -9 to the first new commit",
    "secured": "2 writers with and without TLS, a signed token, certificates among the services, and reconciliation",
    "evolving": "2 writers, batches that bring a new column every 100 checkpoints, beside batches that bring none",
    "shapes": "100 columns, texts of 10 kB, nested values, beside pyarrow, which writes one file of the same rows",
    "idle": "CPU of a cluster that nobody uses",
}
ROWS = {"1s": 8_000_000, "10s": 16_000_000}
"""By interval: some whole checkpoints of the fastest."""
CASES = (
    ("1s", 1, "uniform"),
    ("1s", 2, "uniform"),
    ("10s", 1, "uniform"),
    ("10s", 2, "uniform"),
    ("1s", 2, "zipf"),
    ("10s", 1, "zipf"),
)
_FRESH = "from send, 10 k rows/s, 1 s checkpoints"
_KILLED = "first new commit after kill -9"
GOALS = (
    *(
        Goal(f"{case}: >= 1x PyPaimon per CPU-s", "sustained upserts", f"{case}, uniform", "rows/CPU-s", 1, peer="PyPaimon")
        for case in (
            "1s checkpoints, 1 writer",
            "1s checkpoints, 2 writers",
            "10s checkpoints, 1 writer",
            "10s checkpoints, 2 writers",
        )
    ),
    Goal("send to queryable, p50 <= 1.2 s", _FRESH, "queryable", "s, p50", 1.2),
    Goal("send to queryable, p99 <= 2.5 s", _FRESH, "queryable", "s, p99", 2.5),
    *SMALL_SENDS,
    Goal("overloaded writer <= 512 MiB", "overload", "32 channels, one writer", "MiB peak of the writer", 512),
    Goal("writer killed: first new commit, p99 <= 3 s", _KILLED, "writer", "s, p99", 3),
    Goal("coordinator killed: first new commit, p99 <= 8 s", _KILLED, "coordinator", "s, p99", 8),
    Goal("TLS, JWT, certificates and reconciliation cost <= 10 %", PRICE, SECURED, "rows/CPU-s", 0.9, peer=BARE),
    Goal("a new column every 100 checkpoints costs <= 3 %", EVOLUTION, EVOLVING, "rows/CPU-s", 0.97, peer=STEADY),
    *(Goal(f"{shape}: >= 0.5x {PYARROW_ZSTD}, per CPU-s", SHAPED, shape, "rows/CPU-s", 0.5, PYARROW_ZSTD) for shape in SHAPES),
    Goal("idle cluster <= 2 % of a core", "idle", "one coordinator, two writers, Redis", "% of a core", 2),
)


def main() -> None:
    options = options_of(
        "ingest",
        "The cluster beside PyPaimon and Hudi on Spark. CPU is that of all its processes, Redis too, and of the client.",
        SECTIONS,
        quick="a smoke run of some minutes",
        spark="Hudi on Spark too: some minutes",
    )
    figures = Figures()
    rounds = options.rounds
    rows = dict.fromkeys(ROWS, 1_000_000) if options.quick else ROWS
    cases = CASES[1:3] if options.quick else CASES
    measured = {
        "throughput": lambda: sections.throughput(figures, rows, rounds, cases, spark=options.spark),
        "freshness": lambda: sections.freshness(figures, rounds, 10 if options.quick else 60),
        "small": lambda: small_sends(figures, rounds, 3 if options.quick else 10),
        "overload": lambda: sections.overload(figures, rounds, 10 if options.quick else 30),
        "recovery": lambda: sections.recovery(figures, 2 if options.quick else 20),
        "secured": lambda: secured(figures, rows["1s"], rounds),
        "evolving": lambda: evolving(figures, rows["10s"], rounds),
        "shapes": lambda: shapes(figures, rounds),
        "idle": lambda: sections.idle(figures, 5 if options.quick else 30),
    }
    measure(figures, GOALS, options, measured)
    report(figures, GOALS, options, ("pyarrow", "grpcio", "protobuf", "hudi"))


if __name__ == "__main__":
    main()
