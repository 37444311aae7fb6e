"""The commands that pages name are there, with the options that pages give them."""

import re
import subprocess
from collections.abc import Mapping

import click
import pytest

from support.pages import ROOT, pages
from support.shown_commands import Shown, all_options, parse, shown_commands, shown_options

OF_OTHERS: Mapping[str, str] = {
    "--build-arg": "docker build",
    "--find-links": "pip",
    "--parent-shutdown-time-s": "Envoy",
    "--set": "helm",
    "--stop-timeout": "docker run",
}
"""Options that pages name without their command, and whose they are."""
OF_TASKS = "CONTRIBUTING.md"
"""Names options of what ./task runs."""
PLACEHOLDER = "COMMAND"
SHOWN = [shown for page in pages() for shown in shown_commands(page, "headgate") if PLACEHOLDER not in shown.words]


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: f"{shown.page}: {' '.join(shown.words)}")
def test_the_real_command_line_takes_what_a_page_shows(shown: Shown) -> None:
    parse(shown)


def test_pages_are_read() -> None:
    assert len(SHOWN) > 80
    assert sum(shown.whole for shown in SHOWN) > 10


def test_an_option_that_a_page_names_alone_is_one_of_some_command() -> None:
    named = {option: page for page in pages() if page != OF_TASKS for option in shown_options(page)}
    assert len(named) > 60
    assert {option: page for option, page in named.items() if option not in all_options()}.keys() == OF_OTHERS.keys()


@pytest.mark.parametrize(
    "words",
    [["stauts"], ["load", "--crate"], ["table", "scan", "--asof", "now"], ["coordinator", "--lisen", "1"]],
    ids=" ".join,
)
def test_a_wrong_command_in_a_text_is_found(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parse(Shown("here", words, whole=False))


@pytest.mark.parametrize("words", [["load", "a.csv"], ["dev", "--port"], ["table", "scan", "a", "--limit", "N"]], ids=" ".join)
def test_a_command_in_a_block_is_whole(words: list[str]) -> None:
    parse(Shown("here", words, whole=False))
    with pytest.raises(click.UsageError):
        parse(Shown("here", words, whole=True))


def test_the_task_commands_that_pages_show_are_there() -> None:
    text = (ROOT / "task").read_text(encoding="utf-8")
    there = set(re.findall(r"^task_(\w+)\(\)", text, re.MULTILINE))
    named = {(shown.words[0], *shown.words[1:2]) for page in pages() for shown in shown_commands(page, "task") if shown.words}
    assert len(named) > 10
    assert {words[0] for words in named} <= there
    benches = {path.stem for path in (ROOT / "bench").iterdir()}
    assert {words[1] for words in named if words[0] == "bench" and len(words) > 1} <= benches


def test_task_help_lists_every_command() -> None:
    said = subprocess.run([ROOT / "task", "help"], capture_output=True, text=True, check=True).stdout
    commands = re.search(r"^    (setup \|.+help)\) ", (ROOT / "task").read_text(encoding="utf-8"), re.MULTILINE)
    assert commands
    listed = set(re.findall(r"^  ([a-z0-9]+)", said, re.MULTILINE))
    assert set(commands[1].split(" | ")) - {"help"} == listed
