"""`./task bench profile`: see `--help`."""

from functools import partial
from typing import Any

from bench.ingest import shapes
from bench.ingest.sections import BUCKETS
from bench.ingest.workload import prepare
from bench.tables.child import run_child
from bench.tables.command import measure, options_of, report
from bench.tables.contenders.contender import KEY, ORDERING, PARTITION
from bench.tables.figures import OURS, Figures

EVENTS = "events"
SECTIONS = {EVENTS: "the event of 12 columns, 8 partitions"} | dict.fromkeys(
    shapes.SHAPES, "as `./task bench ingest --only shapes`"
)
UNIT, SUM = "us of CPU a row", "all stages"
EVENT_ROWS = 1_000_000


def main() -> None:
    options = options_of(
        "profile",
        "Where a row's CPU goes: the SDK's and a writer's functions, one after the other in one thread, without the network and\n"
        "the loops between them. Beside it pyarrow, which writes the same rows as one file.",
        SECTIONS,
        quick="one round",
        spark="no effect here",
    )
    figures = Figures()
    measure(figures, (), options, {name: partial(_profile, figures, name, options.rounds) for name in SECTIONS})
    report(figures, (), options, ("pyarrow", "grpcio", "protobuf"))


def _profile(figures: Figures, name: str, rounds: int) -> None:
    if name == EVENTS:
        feed = prepare(EVENT_ROWS, "uniform")
        table: dict[str, Any] = {"record_key": [KEY], "partition_by": [PARTITION], "ordering": ORDERING, "buckets": BUCKETS}
    else:
        feed, table = shapes.prepare(shapes.SHAPES[name]), {"record_key": ["id"], "buckets": BUCKETS}
    section = f"profile of {name}"
    for _ in range(rounds):
        stages = run_child("bench.profile.one_writer:profile", feed=feed, table=table)
        for stage, micros in stages.items():
            figures.add(section, stage, UNIT, OURS, micros)
        figures.add(section, SUM, UNIT, OURS, sum(stages.values()))
        for who, codec in shapes.CODECS.items():
            rate, _ = run_child("bench.ingest.shapes:by_pyarrow", feed=feed, codec=codec)
            figures.add(section, SUM, UNIT, who, 1e6 / rate)


if __name__ == "__main__":
    main()
