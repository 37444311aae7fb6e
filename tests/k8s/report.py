"""What a run found: a table for people, JSON for programs."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from k8s.judging import Judgement

INSTALL_GOAL_S = 60.0


@dataclass(frozen=True, slots=True)
class Line:
    """One event. ``gap``: longest wait for a commit, in s; ``seconds``: from the event's begin until all was well again."""

    event: str
    goal: float
    gap: float
    seconds: float
    error: str = ""

    @property
    def is_well(self) -> bool:
        return not self.error and self.gap <= self.goal


@dataclass(slots=True)
class Report:
    """``install``: seconds from nothing to the first queryable row; ``left_out``: events that were not run, and why."""

    install: float = 0.0
    lines: list[Line] = field(default_factory=list)
    figures: dict[str, object] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    judgement: Judgement | None = None

    @property
    def is_quick(self) -> bool:
        return 0 < self.install <= INSTALL_GOAL_S

    @property
    def is_well(self) -> bool:
        judged = self.judgement is not None and self.judgement.is_well
        lines = all(line.is_well for line in self.lines)
        return judged and lines and not self.findings and self.is_quick

    def text(self) -> str:
        rows = [
            ("event", "goal s", "gap s", "took s", ""),
            (
                "installed, first row queryable",
                f"{INSTALL_GOAL_S:.0f}",
                "",
                _s(self.install),
                "" if self.is_quick else "NOT WELL: above its goal",
            ),
        ]
        rows += [(each.event, _s(each.goal), _s(each.gap), _s(each.seconds), _verdict(each)) for each in self.lines]
        widths = [max(len(row[at]) for row in rows) for at in range(4)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(row[at].rjust(widths[at]) for at in (1, 2, 3)), row[4]]).rstrip()
            for row in rows
        ]
        lines += [f"{name}: {figure}" for name, figure in self.figures.items()]
        lines += _judged(self.judgement) if self.judgement else ["NOT WELL: the table was not judged"]
        lines += [f"NOT WELL: {finding}" for finding in self.findings]
        lines += [f"LEFT OUT: {name}: it needs {why}" for name, why in self.left_out]
        return "\n".join(lines)

    def json(self) -> str:
        return json.dumps(asdict(self) | {"well": self.is_well})


def _judged(judgement: Judgement) -> Sequence[str]:
    failed = f"{len(judgement.failures)} failed, the slowest took {judgement.slowest:.1f} s"
    summary = f"{judgement.rows} rows in {judgement.calls} calls: {failed}"
    lines = [summary, *(f"NOT WELL: {failure}" for failure in judgement.failures), judgement.details]
    return [*lines, "no row is lost, doubled or swapped" if not judgement.anomalies else f"NOT WELL: {dict(judgement.anomalies)}"]


def _verdict(line: Line) -> str:
    if line.error:
        return f"NOT WELL: {line.error}"
    return "" if line.is_well else "NOT WELL: above its goal"


def _s(seconds: float) -> str:
    return f"{seconds:.1f}"
