"""Upserts of every contender in turn, round by round, each in a process of its own."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.tables.child import run_child
from bench.tables.figures import OURS, Figures
from bench.tables.upsert_run import Answer
from bench.tables.workload import Phases, oracle, prepare


@dataclass(frozen=True, slots=True)
class Entrant:
    """A contender, the interpreter that has it, and how few commits of a phase suffice for it."""

    name: str
    contender: str
    python: str
    rounds: int | None = None
    most: Mapping[str, int] | None = None

    def share(self, phases: Phases) -> Phases:
        """The phases as this one runs them."""
        return {name: (rows, min(commits, (self.most or {}).get(name, commits))) for name, (rows, commits) in phases.items()}


def entrants(*, spark: bool) -> list[Entrant]:
    """Those whose environments are there."""
    found = [
        Entrant(name, f"bench.tables.contenders.headgate:{contender}", sys.executable)
        for name, contender in ((OURS, "Headgate"), (f"{OURS}, avro", "HeadgateInAvro"), (f"{OURS}, auto", "HeadgateInEither"))
    ]
    if python := os.environ.get("HEADGATE_PAIMON_PYTHON"):
        found.append(Entrant("PyPaimon", "bench.tables.contenders.paimon:Paimon", python))
    if spark:
        few = {"100k": 2, "10k": 2, "100": 2}
        python = os.environ["HEADGATE_SPARK_PYTHON"]
        found.append(Entrant("Hudi on Spark", "bench.tables.contenders.spark:HudiSpark", python, rounds=1, most=few))
    return found


def upserts(figures: Figures, flat: Phases, partitioned: Phases, contenders: Sequence[Entrant], rounds: int) -> None:
    """``flat``, ``partitioned``: the commits of such a table. Raises AssertionError when one ends with wrong rows."""
    _of_layout(figures, flat, flat, contenders, rounds, partitioned=False)
    _of_layout(figures, partitioned, flat, contenders, rounds, partitioned=True)


def _of_layout(
    figures: Figures, phases: Phases, full: Phases, contenders: Sequence[Entrant], rounds: int, *, partitioned: bool
) -> None:
    """``phases``: the commits to run, of the workload ``full``."""
    workload = prepare(full)
    layout = "28 x 8 groups (PyPaimon 28 x 4)" if partitioned else "8 groups (PyPaimon 4)"
    for number in range(rounds):
        for entrant in contenders:
            if number < (entrant.rounds or rounds):
                share = entrant.share(phases)
                expected = oracle(workload, share) if number == 0 else None
                answer = run_child(
                    "bench.tables.upsert_run:run",
                    entrant.python,
                    contender=entrant.contender,
                    workload=workload,
                    phases=share,
                    partitioned=partitioned,
                    oracle=expected,
                )
                _check(entrant, layout, answer)
                _record(figures, f"upsert, {layout}", entrant, share, answer)


def _check(entrant: Entrant, layout: str, answer: Answer) -> None:
    wrong = {reader: text for reader, text in answer["differences"].items() if text}
    if wrong:
        raise AssertionError(f"{entrant.name}, {layout}: the table is not what the oracle says: {wrong}")


def _record(figures: Figures, section: str, entrant: Entrant, phases: Phases, answer: Answer) -> None:
    def add(figure: str, unit: str, value: float, *, more_is_better: bool = False) -> None:
        figures.add(section, figure, unit, entrant.name, value, more_is_better=more_is_better)

    for phase, (rows, _) in phases.items():
        used = answer["phases"][phase]
        walls = sorted(used["walls"])
        what = f"{phase}: {rows:,} rows a commit"
        add(what, "rows/CPU-s", rows / median(used["cpus"]), more_is_better=True)
        add(what, "ms wall, p50", 1000 * median(walls))
        if len(walls) >= 100:
            add(what, "ms wall, p99", 1000 * walls[int(len(walls) * 0.99)])
        if len(walls) >= 200:
            add(what, "last 100 / first 100", median(used["walls"][-100:]) / median(used["walls"][:100]))
        add(what, "bytes a row", used["bytes"] / used["kept"])
    add("all", "MB peak memory", answer["peak"] / 1e6)
