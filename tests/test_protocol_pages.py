"""docs/protocol says what each cited rule means, and code, tests and pages that are named anywhere are there."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "protocol"
PRODUCTION = ("coordinator", "writer", "compactor", "lib", "proto")
FOLDERS = (*PRODUCTION, "tests", "docs", "demo", "bench", "scripts", "deploy", ".ci")
ENDINGS = {".py", ".md", ".proto", ".toml", ".sh", ".yml", ".yaml", ".tpl", ".conf", ""}
GOLDEN = ROOT / "tests" / "golden"

_PLAIN = r"(?:RO|CH|EX|TM|FI|DE|HF)\d{1,2}"
"""Means nothing else, so it is a citation wherever it stands."""
_ID = rf"(?:{_PLAIN}|[RTCPDGWFH]\d{{1,2}})"
_LIST = rf"{_ID}(?:(?:,? and |, | to ){_ID})*"
CITATION = re.compile(
    rf"\b(?:[Rr]ules?|[Hh]azards?|[Ff]acts?) {_LIST}\b|(?<!\w)\({_LIST}(?=[);])|\[{_LIST}(?=\]\()|\"{_LIST}(?=: )|\b{_PLAIN}\b"
)
NAMED_TEST = re.compile(r"def test_((?:(?:ro|ch|ex|tm|fi|de|hf|[rtcpdgwfh])\d{1,2}_)+)")
"""A test whose name begins with the rules that it guards."""
RULE, FACT = ("What must hold", "Without it"), ("What Hudi does", "Shown by")
GONE = re.compile(r"§ ?\d|hudi-format|interop.facts?\b|streaming-writer|fast-paths|(?<![-./\w])spec/|\breliability \d")
"""Names of pages that were never in the repository."""


class Rule(NamedTuple):
    """One section of a page. ``parts``: text by label."""

    id: str
    title: str
    page: str
    parts: Mapping[str, str]


@cache
def texts() -> Mapping[Path, str]:
    """Every file of the project that people write, but for this one."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))] + sorted(ROOT.glob("*.md"))
    return {
        path: path.read_text()
        for path in found
        if path.is_file()
        and path.suffix in ENDINGS
        and not any(part in ("__pycache__", "node_modules") for part in path.parts)
        and not path.stem.endswith(("_pb2", "_pb2_grpc"))
        and path != Path(__file__)
        and (path.suffix == ".md" or GOLDEN not in path.parents)
    }


@cache
def cited(text: str) -> set[str]:
    """The ids that a text cites; ``R1 to R3`` is three."""
    flat = re.sub(r"\s*\n\s*(?:#|//)?\s*", " ", text)
    found = set()
    for citation in CITATION.findall(flat):
        found.update(re.findall(_ID, citation))
        for letters, first, last in re.findall(r"([A-Z]+)(\d+) to [A-Z]+(\d+)", citation):
            found.update(f"{letters}{number}" for number in range(int(first), int(last) + 1))
    for prefix in NAMED_TEST.findall(text):
        found.update(prefix.upper().strip("_").split("_"))
    return found


@cache
def rules() -> Sequence[Rule]:
    """Of all pages, in their order."""
    return [rule for page in sorted(PAGES.glob("*.md")) for rule in _rules_of(page)]


def _rules_of(page: Path) -> Iterator[Rule]:
    for section in re.split(r"^(?=#{2,3} )", texts()[page], flags=re.M):
        head = re.match(rf"### ({_ID}) · (.+)\n", section)
        if head:
            parts = re.findall(r"^- \*\*([\w ]+)\.\*\* (.+?)(?=^- \*\*|\n\n|\Z)", section, flags=re.M | re.S)
            yield Rule(head[1], head[2], page.name, {label: " ".join(text.split()) for label, text in parts})


def files_of(*folders: str) -> Mapping[Path, str]:
    return {path: text for path, text in texts().items() if path.relative_to(ROOT).parts[0] in folders}


@cache
def defined_tests() -> Mapping[str, Sequence[Path]]:
    found: dict[str, list[Path]] = {}
    for path, text in files_of("tests").items():
        for name in re.findall(r"def (test_\w+)", text):
            found.setdefault(name, []).append(path)
    return found


def named_tests(text: str) -> list[str]:
    """Whole names; one that is cut short with ``…`` is not."""
    return re.findall(r"\btest_\w{12,}\b(?![…/.]|\()", text)


def places(rule: Rule) -> Sequence[tuple[str, Sequence[str]]]:
    """Where it is held: the ends of files' paths, each with names that are defined there."""
    found = re.findall(r"`([\w/.]+\.\w+)`((?: \([^)]*\))?)", rule.parts["Held in"])
    return [(path, re.findall(r"\w+", " ".join(re.findall(r"`([\w.]+)`", names)))) for path, names in found]


@cache
def files_at(end: str) -> Sequence[Path]:
    return [path for path, place in _production().items() if place.endswith(f"/{end}")]


@cache
def _production() -> Mapping[Path, str]:
    return {path: f"/{shown(path)}" for path in files_of(*PRODUCTION)}


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_rule_is_defined_once_and_every_cited_one_is() -> None:
    defined = Counter(rule.id for rule in rules())
    assert len(defined) > 60, "the pages are not read"
    assert not [each for each, count in defined.items() if count > 1]
    unknown = {shown(path): sorted(cited(text) - defined.keys()) for path, text in texts().items()}
    assert not {path: ids for path, ids in unknown.items() if ids}


def test_every_rule_is_cited_where_it_is_held() -> None:
    missing = {}
    for rule in rules():
        files = [file for path, _ in places(rule) for file in files_at(path)]
        if not any(rule.id in cited(texts()[file]) for file in files):
            missing[rule.id] = sorted(map(shown, files))
    assert not missing


def test_every_rule_is_cited_where_one_of_its_guards_is() -> None:
    missing = {}
    for rule in rules():
        guards = {path for name in named_tests(rule.parts.get("Guarded by", "")) for path in defined_tests().get(name, ())}
        if not any(rule.id in cited(texts()[path]) for path in guards):
            missing[rule.id] = sorted(map(shown, guards))
    assert not missing


@pytest.mark.parametrize("folders", [PRODUCTION, ("docs",)], ids=["production", "docs"])
def test_every_test_that_is_named_is_there(folders: Sequence[str]) -> None:
    modules = {path.stem for path in files_of("tests")}
    named = {name: shown(path) for path, text in files_of(*folders).items() for name in named_tests(text)}
    assert not {name: path for name, path in named.items() if name not in defined_tests().keys() | modules}


def test_every_rule_has_its_parts() -> None:
    for rule in rules():
        first = FACT if rule.page == "hudi.md" else RULE
        assert [*rule.parts][:4] == [*first, "Held in", "Guarded by"], rule.id
        assert rule.parts.keys() <= {*first, "Held in", "Guarded by", "Learnt", "Limit"}, rule.id
        assert named_tests(rule.parts["Guarded by"]), rule.id


def test_every_place_that_a_rule_names_is_there() -> None:
    wrong = []
    for rule in rules():
        assert places(rule), rule.id
        for path, names in places(rule):
            files = files_at(path)
            if len(files) != 1:
                wrong.append(f"{rule.id}: {path} is {[*map(shown, files)] or 'nowhere'}")
            else:
                wrong += [f"{rule.id}: {path} has no {name}" for name in names if not _defines(texts()[files[0]], name)]
    assert not wrong, "\n".join(wrong)


def _defines(text: str, name: str) -> bool:
    return (
        re.search(rf"(?:def|class) {name}\b|^ *{name}\b *(?::[^=\n]+)?=|\b{name}\b,$|import .*\b{name}\b", text, re.M) is not None
    )


def test_no_file_names_a_page_that_is_not_there() -> None:
    pages = {shown(path) for path in texts() if path.suffix == ".md"}
    wrong = []
    for path, text in texts().items():
        for name in re.findall(r"(?<![\w/*{}])(?:\.\./|\.?[\w-]+/)*[\w-]+\.md\b", text):
            beside = (path.parent / name).resolve()
            if beside not in texts() and name not in pages and f"docs/{name}" not in pages:
                wrong.append(f"{shown(path)} names {name}")
        wrong += [f"{shown(path)} names {found}" for found in GONE.findall(text)]
    assert not wrong, "\n".join(wrong)


def test_links_lead_to_headings() -> None:
    wrong = []
    for path, text in texts().items():
        for target, anchor in re.findall(r"\]\(([\w./-]*\.md)?#([^)\s]+)\)", text) if path.suffix == ".md" else ():
            page = texts().get((path.parent / target).resolve() if target else path, "")
            if anchor not in {_slug(heading) for heading in re.findall(r"^#+ (.+)$", page, re.M)}:
                wrong.append(f"{shown(path)}: {target}#{anchor}")
    assert not wrong, "\n".join(wrong)


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_table_of_rules_is_that_of_the_pages() -> None:
    rows = re.findall(r"^\| \[(\w+)\]\(([\w-]+\.md)#\S+\) \| (.+?) \|", texts()[PAGES / "README.md"], re.M)
    assert sorted(rows) == sorted((rule.id, rule.page, rule.title) for rule in rules())


def test_every_kind_of_slot_and_every_named_step_is_told_of() -> None:
    [slots] = [text for path, text in files_of("lib").items() if path.name == "bodies.py"]
    kinds = re.findall(r'^    ([A-Z_]+) = "\1"$', slots, re.M)
    sources = [*files_of(*PRODUCTION).values(), texts()[ROOT / "tests/support/coordinator_steps.py"]]
    steps = {step for text in sources for step in re.findall(r'reached\("(\w+)"\)', text)}
    assert len(kinds) > 10 < len(steps), "they are written in another way"
    log, crashes = texts()[PAGES / "commit-log.md"], texts()[PAGES / "crashes.md"]
    assert not [kind for kind in kinds if not re.search(rf"^\| .*\b{kind}\b.* \|", log, re.M)]
    assert not [step for step in steps if f"`{step}`" not in crashes]
