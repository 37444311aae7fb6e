"""`./task bench attacks`: see `--help`."""

from bench.attacks import memory, requests
from bench.attacks.flood import FLOODS
from bench.tables.command import options_of, report
from bench.tables.figures import Figures, Goal

SECTIONS = {
    "memory": "messages that never end, and connections: memory of the process, and other callers' calls",
    "requests": "requests at full speed that are refused: the event loop, other principals' calls, and memory",
}
GOALS = (
    *(Goal(f"{attack}: writer <= 512 MiB", memory.SECTION, attack, memory.PEAK, 512) for attack in memory.OF_WRITER),
    *(Goal(f"{attack}: growth <= 278 MiB", memory.SECTION, attack, memory.GROWTH, 278) for attack in memory.OF_COORDINATOR),
    *(
        Goal(f"{attack}: returned in 10 s", memory.SECTION, attack, memory.RETURNED, 10)
        for attack in [*memory.OF_WRITER, *memory.OF_COORDINATOR]
    ),
    *(Goal(f"{flood}: the loop stands for <= 200 ms", requests.SECTION, flood, requests.DELAY, 200) for flood in FLOODS),
    *(Goal(f"{flood}: others' p99 <= 2x", requests.SECTION, flood, requests.TIMES, 2) for flood in FLOODS),
    *(Goal(f"{flood}: memory is back in 10 s", requests.SECTION, flood, requests.RETURNED, 10) for flood in FLOODS),
)


def main() -> None:
    options = options_of(
        "attacks",
        "Attacks on a cluster with tokens: a coordinator and a writer.",
        SECTIONS,
        quick="fewer streams and shorter floods",
        spark="changes nothing here",
        match="measure only attacks whose name contains this",
    )
    figures = Figures()
    if "memory" in options.only:
        for _ in range(options.rounds):
            memory.measure(figures, options.match, quick=options.quick)
    if "requests" in options.only:
        for _ in range(options.rounds):
            requests.measure(figures, options.match, quick=options.quick)
    goals = [goal for goal in GOALS if options.match in goal.text]
    report(figures, goals, options, ("grpcio", "protobuf", "pyarrow"))


if __name__ == "__main__":
    main()
