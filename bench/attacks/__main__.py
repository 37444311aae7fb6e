"""`./task bench attacks`: see `--help`."""

from bench.attacks import memory, noticed, requests
from bench.attacks.attacker import ATTACKS
from bench.attacks.flood import FLOODS
from bench.tables.command import measure, options_of, report
from bench.tables.figures import Figures, Goal

SECTIONS = {
    "memory": "messages that never end, and connections",
    "requests": "requests at full speed that are refused",
}
_ALL = [*((memory.SECTION, attack) for attack in ATTACKS), *((requests.SECTION, flood) for flood in FLOODS)]
GOALS = (
    *(Goal(f"{attack}: writer <= 512 MiB", memory.SECTION, attack, noticed.PEAK, 512) for attack in memory.OF_WRITER),
    *(Goal(f"{attack}: growth <= 286 MiB", memory.SECTION, attack, noticed.GROWTH, 286) for attack in memory.OF_COORDINATOR),
    *(Goal(f"{name}: the loop stands for <= 200 ms", section, name, noticed.DELAY, 200) for section, name in _ALL),
    *(Goal(f"{name}: others' p99 <= 2x", section, name, noticed.TIMES, 2) for section, name in _ALL),
    *(Goal(f"{name}: others' p99 <= 2x that beside the load", section, name, noticed.TIMES_OF_LOAD, 2) for section, name in _ALL),
    *(Goal(f"{name}: memory and p99 are back in 10 s", section, name, noticed.RETURNED, 10) for section, name in _ALL),
)


def main() -> None:
    options = options_of(
        "attacks",
        "Attacks on a cluster with tokens, a coordinator and a writer: the process's memory, how long its event loop stands,\n"
        "and another principal's p99; before, meanwhile, until they are back, and beside processes that take as much\n"
        "CPU as the attacker and send nothing.",
        SECTIONS,
        quick="fewer streams and shorter floods",
        spark="changes nothing here",
        match="measure only attacks whose name contains this",
    )
    figures = Figures()
    goals = [goal for goal in GOALS if options.match in goal.text]
    sections = {
        "memory": lambda: memory.measure(figures, options.match, options.rounds, quick=options.quick),
        "requests": lambda: requests.measure(figures, options.match, options.rounds, quick=options.quick),
    }
    measure(figures, goals, options, sections)
    report(figures, goals, options, ("grpcio", "protobuf", "pyarrow"))


if __name__ == "__main__":
    main()
