"""One word for each thing: the glossary's words are used, and banned synonyms do not come back."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
CODE = ("coordinator", "writer", "compactor", "lib", "proto")
PAGES = ("docs", "README.md", "CONTRIBUTING.md", "lib/tables/README.md")
SDK = ("lib/client", "lib/cli", "demo")
GLOSSARY = ROOT / "docs" / "architecture.md"


class Banned(NamedTuple):
    """``pattern``: ignores case. ``instead``: the right word. ``where``: folders and files from the root."""

    pattern: str
    instead: str
    where: Sequence[str]
    unless: str = r"(?!)"


_ROUNDING = r"round[- ]trips?|rounds silently|half round|rounds? (?:down|up)|(?:going|way) round"
BANNED = (
    Banned(
        r"\brounds?\b(?!\()",
        "checkpoint",
        (*CODE, *PAGES, "demo"),
        _ROUNDING,
    ),
    Banned(r"\bmicro-?batch", "checkpoint", (*CODE, *PAGES, *SDK)),
    Banned(r"\bshards?\b", "bucket, or key group", (*CODE, *PAGES, *SDK)),
    Banned(r"\bbrokers?\b", "writer", (*CODE, *PAGES, *SDK)),
    Banned(r"\btopics?\b", "table, or channel", (*CODE, *PAGES, *SDK)),
    Banned(r"\bleaders?\b", "owner", (*CODE, *PAGES, *SDK)),
    Banned(r"\bwatermarks?\b", "committed offset", (*CODE, *PAGES, *SDK)),
    Banned(r"\bsequence numbers?\b", "offset, or the slot's number", (*CODE[:3], "proto", *PAGES, *SDK)),
    Banned(r"\blog entr(?:y|ies)\b", "slot", (*PAGES, *SDK)),
    Banned(r"\blog segments?\b", "log file", (*CODE, *PAGES, *SDK)),
    Banned(r"\bsnapshots? ids?\b", "instant", (*CODE, *PAGES, *SDK)),
    Banned(r"\btake[-_]in\b", "readmit", (*CODE, *PAGES, *SDK)),
    Banned(r"UnexplainedAnswer", "ProtocolViolation", (*CODE, *PAGES, *SDK, "tests")),
    Banned(r"\bwhoever\b", "a noun: the owner, the process, the reader", (*CODE, *PAGES, *SDK)),
    Banned(r"\btold\b", "acknowledged, reported, asked", (*CODE, *PAGES, *SDK)),
    Banned(r"checkpoints?(?: \S+){0,6} (?:given|gives?|gave) (?:\S+ )?up\b", "aborted", (*CODE, *PAGES, *SDK)),
    Banned(r"\bnobody foresaw\b|\bis no operator\b", "unexpected; is not an operator", (*CODE, *PAGES, *SDK)),
    Banned(r"\bwhat is so\b", "a noun", (*CODE, *PAGES, *SDK)),
    Banned(r"drop_beaten|\b_?bur(?:y|ied)", "sift, or: declare dead, win a DEAD slot", CODE),
    Banned(r"\b(?:Giver|Wish|Ladder)\b", "a field's term", CODE),
    Banned(r"\broles?\b", "kind of service", [f"lib/runtime/headgate_runtime/{name}.py" for name in ("peers", "channels")]),
    Banned(r"\bverdicts?\b", "a batch's disposition, a clock's status; trials have verdicts", CODE),
    Banned(r"\btall(?:y|ies)\b", "an accumulator, a count: a tally is of the exchange", ("lib",)),
)

_FACE = "a Protocol of `face/`, and the class of `hudi/` that has it"
_FORMS = "of the SDK: one for asyncio, one for threads"
_ENDS = "one thing at two ends of a stream"
_ERROR = "the SDK's, and that of the library that a server passes on"
_OUTSIDE = "of the outside world; each distribution has its own"
TWINS: Mapping[str, str] = {
    **dict.fromkeys(
        ("BulkFiles", "Definition", "FileGroup", "FileSlice", "LogFile", "Matches", "SliceQuery", "StuckSlice", "TableReader"),
        _FACE,
    ),
    **dict.fromkeys(("Channel", "Headgate", "Readable", "ReadableByName", "Receipt", "StoredTable"), _FORMS),
    **dict.fromkeys(("Barrier", "Entry", "Hold", "Membership", "Refusal", "RunningAttempt", "Tally", "Writer"), _ENDS),
    **dict.fromkeys(("FixCall", "RangeGoneError", "RetryLater", "SchemaError", "TooLargeError"), _ERROR),
    **dict.fromkeys(("TableDroppedError", "TableExistsError", "TableRenamedError"), _ERROR),
    **dict.fromkeys(("Backoff", "Clock", "Ids", "System", "SystemClock", "SystemIds"), _OUTSIDE),
    "Alteration": "what a caller wants to change, and what the SDK says that it changed",
    "Restore": "the slot, and what the SDK says that it undid",
    "Scan": f"{_FORMS}, and the library's, which does it",
    "Stream": "a gRPC stream: a channel's, a service's",
    "Table": f"{_FORMS}, and the library's; {_FACE}",
    "Tick": "the deadline of a core has come",
    "Transaction": _FACE,
}
"""Classes of one name, and the one thing that they are."""


def classes() -> Mapping[str, Sequence[str]]:
    """Files that define a public class at their outermost level, by its name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, text in texts(*CODE).items():
        if path.suffix == ".py":
            for each in ast.parse(text).body:
                if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                    found[each.name].append(str(path.relative_to(ROOT)))
    return found


@cache
def texts(*where: str) -> dict[Path, str]:
    """Code and pages that people write."""
    named = [ROOT / name for name in where]
    found = [path for each in named for path in ([each] if each.is_file() else sorted(each.rglob("*")))]
    return {
        path: path.read_text()
        for path in found
        if path.suffix in {".py", ".proto", ".md"} and "_pb2" not in path.name and path != Path(__file__)
    }


def terms() -> Iterator[str]:
    """Words of the table; those in bold head a part of it."""
    for row in re.findall(r"^\| ([^|]+) \| [^|]", GLOSSARY.read_text().partition("## Glossary")[2], re.MULTILINE):
        if row not in ("word", "---"):
            yield from row.split(", ")


def found(banned: Banned) -> list[str]:
    """``file:line`` of each use."""
    uses = []
    for path, text in texts(*banned.where).items():
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(banned.pattern, re.sub(banned.unless, "", line, flags=re.IGNORECASE), re.IGNORECASE):
                uses.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    return uses


@pytest.mark.parametrize("banned", BANNED, ids=lambda banned: banned.pattern)
def test_a_banned_synonym_does_not_come_back(banned: Banned) -> None:
    uses = found(banned)
    assert not uses, f"say {banned.instead!r} instead:\n" + "\n".join(uses)


def test_a_ban_has_an_effect_on_files_that_are_there() -> None:
    for banned in BANNED:
        assert all((ROOT / place).exists() for place in banned.where)


@pytest.mark.parametrize("term", list(terms()))
def test_code_and_rules_use_a_word_of_the_glossary(term: str) -> None:
    pattern = re.compile(re.sub(r"[ -]", r"s?[\\s_-]?", term), re.IGNORECASE)
    assert any(pattern.search(text) for text in texts(*CODE, "docs/protocol").values()), "drop it from the glossary, or use it"


def test_every_word_of_the_glossary_is_there_once_and_has_a_meaning() -> None:
    words = list(terms())
    assert len(words) == len(set(words)) > 40


def test_a_class_name_stands_for_one_thing() -> None:
    twins = {name: files for name, files in classes().items() if len(files) > 1}
    new = {name: files for name, files in twins.items() if name not in TWINS}
    assert not new, f"give one of them a name of its own; if they are one thing, say so in TWINS: {new}"
    assert not TWINS.keys() - twins.keys(), "they are no twins any more"


def test_every_file_that_the_architecture_names_is_there() -> None:
    there = [f"/{path.relative_to(ROOT)}" for path in texts(*CODE, "tests")] + [f"/tests/{Path(__file__).name}"]
    named = set(re.findall(r"`((?:[\w]+/)*\w+\.py)`", GLOSSARY.read_text()))
    gone = sorted(name for name in named if not any(path.endswith(f"/{name}") for path in there))
    assert not gone


def test_every_layer_of_the_coordinator_is_in_the_architecture() -> None:
    folders = {path.name for path in (ROOT / "coordinator/headgate_coordinator").iterdir() if (path / "__init__.py").exists()}
    section = GLOSSARY.read_text().partition("A coordinator has")[2].partition("###")[0]
    assert folders == set(re.findall(r"^\| `(\w+)/` \|", section, re.MULTILINE))
