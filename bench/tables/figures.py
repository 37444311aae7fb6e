"""What was measured: printed for people, written as JSON for machines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.tables.progress import say

OURS = "headgate"


@dataclass(slots=True)
class Row:
    """One figure, a value of each contender for each round."""

    section: str
    figure: str
    unit: str
    more_is_better: bool
    values: dict[str, list[float]] = field(default_factory=dict)

    def median(self, contender: str) -> float:
        return median(self.values[contender])

    def ratios(self, peer: str) -> list[float]:
        """How many times better we are, round by round (a peer with fewer rounds is compared with our first ones).

        Rounds with a zero are left out: nothing is so many times that.
        """
        pairs = zip(self.values.get(OURS, ()), self.values.get(peer, ()), strict=False)
        return [(ours / theirs if self.more_is_better else theirs / ours) for ours, theirs in pairs if ours and theirs]


@dataclass(frozen=True, slots=True)
class Goal:
    """``peer`` given: the ratio to it has to reach ``limit``; else our own value, from the side that is better."""

    text: str
    section: str
    figure: str
    unit: str
    limit: float
    peer: str | None = None


class Figures:
    """All rows of a run, in the order in which they were first added."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str, str], Row] = {}
        self.notes: dict[str, list[str]] = {}

    def note(self, section: str, *lines: str) -> None:
        """What a reader of the section's figures has to know; of several calls the last one counts."""
        self.notes[section] = [*lines]

    def add(self, section: str, figure: str, unit: str, contender: str, value: float, *, more_is_better: bool = False) -> None:
        """One more round's value, told at once."""
        say(f"{section}: {figure}: {contender} {number(value)} {unit}")
        row = self.rows.setdefault((section, figure, unit), Row(section, figure, unit, more_is_better))
        row.values.setdefault(contender, []).append(value)

    def report(self, goals: Sequence[Goal]) -> Iterator[str]:
        """Lines of text: a table for each section, medians over rounds, and its notes; then the goals."""
        for section in dict.fromkeys(row.section for row in self.rows.values()):
            rows = [row for row in self.rows.values() if row.section == section]
            yield from ("", *_table(section, rows), *(f"  {line}" for line in self.notes.get(section, ())))
        yield from ("", "Goals")
        for goal, value, met in self.judged(goals):
            found = "not measured" if value is None else f"{number(value)}  {'met' if met else 'MISSED'}"
            yield f"  {goal.text:<74}{found}"

    def judged(self, goals: Sequence[Goal]) -> Iterator[tuple[Goal, float | None, bool]]:
        """Each goal with what was measured and whether that reaches it; None where it was not measured."""
        for goal in goals:
            row = self.rows.get((goal.section, goal.figure, goal.unit))
            if row is None or OURS not in row.values or (goal.peer and goal.peer not in row.values):
                yield goal, None, False
            elif goal.peer:
                value = median(row.ratios(goal.peer))
                yield goal, value, value >= goal.limit
            else:
                value = row.median(OURS)
                yield goal, value, value >= goal.limit if row.more_is_better else value <= goal.limit

    def as_json(self, goals: Sequence[Goal]) -> dict[str, object]:
        """Every value of every round, the notes and the goals. ``ratios``: how many times better we are than a peer, by round."""
        rows = [
            {
                "section": row.section,
                "figure": row.figure,
                "unit": row.unit,
                "more_is_better": row.more_is_better,
                "rounds": row.values,
                "median": {name: median(values) for name, values in row.values.items()},
                "ratios": {name: row.ratios(name) for name in row.values if name != OURS and row.ratios(name)},
            }
            for row in self.rows.values()
        ]
        judged = [
            {"goal": goal.text, "section": goal.section, "limit": goal.limit, "value": value, "met": met}
            for goal, value, met in self.judged(goals)
        ]
        return {"figures": rows, "notes": self.notes, "goals": judged}


def _table(section: str, rows: Sequence[Row]) -> Iterator[str]:
    contenders = list(dict.fromkeys(name for row in rows for name in row.values))
    peers = [name for name in contenders if name != OURS]
    named, measured = max(32, *(len(row.figure) + 1 for row in rows)), max(26, *(len(row.unit) + 1 for row in rows))
    head = "".join(f"{name:>14}" for name in contenders) + "".join(f"{'vs ' + name:>26}" for name in peers)
    yield f"{section:<{2 + named + measured}}{head}"
    previous = ""
    for row in rows:
        cells = "".join(f"{number(row.median(name)) if name in row.values else '':>14}" for name in contenders)
        cells += "".join(f"{spread(row.ratios(name)):>26}" for name in peers)
        yield f"  {row.figure if row.figure != previous else '':<{named}}{row.unit:<{measured}}{cells}"
        previous = row.figure


def spread(ratios: Sequence[float]) -> str:
    """Their median, and from where to where they go; nothing without any."""
    if not ratios:
        return ""
    ends = f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
    return f"{median(ratios):.2f}{ends}"


def number(value: float) -> str:
    """Three digits, for people."""
    if value >= 1e6:
        return f"{value / 1e6:.2f} M"
    if value >= 1e4:
        return f"{value / 1e3:.0f} k"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
