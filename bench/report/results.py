"""Results of benches that ran in full: the newest of each section, in files of the repository."""

import json
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path("bench/results")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where and when a section was measured. ``load``: of the machine at the end, over a minute."""

    commit: str
    date: str
    cpu: str
    cpus: int
    rounds: int
    load: float

    def __str__(self) -> str:
        runs = "one run" if self.rounds == 1 else f"medians of {self.rounds} runs"
        machine = f"{self.cpu}, {self.cpus} processors"
        return f"Commit {self.commit}, {self.date}, {machine}, {runs}, load at the end {self.load:.1f}."


@dataclass(frozen=True, slots=True)
class Section:
    """``figures``, ``goals``: as ``Figures.as_json`` has them; of the goals those that were measured."""

    title: str
    origin: Origin
    figures: Sequence[Mapping[str, Any]]
    notes: Sequence[str]
    goals: Sequence[Mapping[str, Any]]


def keep(folder: Path, bench: str, result: Mapping[str, Any], measured: Collection[str], origin: Origin) -> None:
    """Sections of ``measured`` replace their older ones; all others stay. ``result``: of ``Figures.as_json``."""
    file = folder / f"{bench}.json"
    sections = json.loads(file.read_text()) if file.exists() else {}
    for title in dict.fromkeys(figure["section"] for figure in result["figures"] if figure["section"] in measured):
        sections[title] = {
            "origin": asdict(origin),
            "figures": [figure for figure in result["figures"] if figure["section"] == title],
            "notes": [*result["notes"].get(title, ())],
            "goals": [goal for goal in result["goals"] if goal["section"] == title and goal["value"] is not None],
        }
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(sections, indent=1) + "\n")


def results(folder: Path) -> Iterator[tuple[str, list[Section]]]:
    """Every bench that has results, by name, with its sections in the order of their first run."""
    for file in sorted(folder.glob("*.json")):
        sections = json.loads(file.read_text())
        yield (
            file.stem,
            [
                Section(title, Origin(**each["origin"]), each["figures"], each["notes"], each["goals"])
                for title, each in sections.items()
            ],
        )


def commit() -> str:
    """What is checked out, and whether files differ from it, other than results."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()

    return git("rev-parse", "--short=8", "HEAD") + (
        " with changes" if git("status", "--porcelain", "-uno", "--", ".", f":!{RESULTS}") else ""
    )


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")
