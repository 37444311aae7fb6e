"""The page of results."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.report.results import Section
from bench.tables.figures import OURS, number, spread

HEAD = """# Performance

What the benches measured last, written by `./task bench report`: a bench that runs in full replaces the sections that it
measured. Machines differ, so judge the columns *times better*, which compare contenders of the same runs (in brackets their
range); above 1 we are better. CPU is user and system time of all threads and processes, of servers and clients.
"""


def page(benches: Sequence[tuple[str, Sequence[Section]]]) -> str:
    """Markdown. ``benches``: names with their results."""
    return HEAD + "".join(line + "\n" for name, sections in benches for line in _bench(name, sections))


def _bench(name: str, sections: Sequence[Section]) -> Iterator[str]:
    yield from ("", f"## ./task bench {name}")
    for section in sections:
        yield from ("", f"### {section.title[:1].upper()}{section.title[1:]}", "", *_table(section.figures))
        yield from ("", " ".join([*map(_sentence, section.notes), str(section.origin)]))
        if section.goals:
            yield from ("", *map(_goal, section.goals))


def _table(figures: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    contenders = list(dict.fromkeys(name for figure in figures for name in figure["rounds"]))
    peers = [name for name in contenders if name != OURS]
    heads = ["", "unit", *contenders, *(f"times better than {name}" for name in peers)]
    yield _row(heads)
    yield _row(["---", "---", *(["---:"] * (len(heads) - 2))])
    for figure in figures:
        medians = [number(figure["median"][name]) if name in figure["median"] else "" for name in contenders]
        yield _row([figure["figure"], figure["unit"], *medians, *(spread(figure["ratios"].get(name, ())) for name in peers)])


def _goal(goal: Mapping[str, Any]) -> str:
    return _plain(f"- {goal['goal']}: {number(goal['value'])}, {'met' if goal['met'] else '**missed**'}")


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:] + ("" if note.endswith((".", ":")) else ".")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_plain(cell.replace("|", "\\|")) for cell in cells) + " |"


def _plain(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;")
