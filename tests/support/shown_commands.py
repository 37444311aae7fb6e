"""What pages tell people to type, read as a shell and the real command line do."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import NamedTuple

import click

from headgate_cli.main import headgate
from headgate_compactor.settings import CompactorSettings
from headgate_coordinator.settings import CoordinatorSettings
from headgate_runtime.settings import ServiceSettings
from headgate_writer.settings import WriterSettings
from support.pages import blocks, quoted

SERVICES: Mapping[str, type[ServiceSettings]] = {
    "coordinator": CoordinatorSettings,
    "writer": WriterSettings,
    "compactor": CompactorSettings,
}
SHELL = ("", "sh")
VALUE = "VALUE"
_ASSIGNMENT = re.compile(r"[A-Z_]+=")
_COMMAND_ENDS = frozenset({"|", "||", "&", "&&", ";", "<", ">", ">>", "(", ")"})


class Shown(NamedTuple):
    """The words of one command. ``whole``: it stands in a block, to be typed as it is; in a text, parts may be left out."""

    page: str
    words: Sequence[str]
    whole: bool


def shown_commands(page: str, name: str) -> Iterator[Shown]:
    """The commands of a page that call this program, without its name."""
    lines = [line for block in blocks(page) if block.language in SHELL for line in block.text.replace("\\\n", " ").splitlines()]
    for text, whole in [*((line, True) for line in lines), *((text, False) for text in quoted(page))]:
        for words in simple_commands(text):
            called = [*dropwhile(_ASSIGNMENT.match, words)]
            if called and called[0].rpartition("/")[2] == name:
                yield Shown(page, called[1:], whole)


def shown_options(page: str) -> Iterator[str]:
    """Long options that a page names without their command: in a text, or as a line of a block."""
    lines = [line for block in blocks(page) if block.language in SHELL for line in block.text.splitlines()]
    for text in (*quoted(page), *lines):
        if text.startswith("--"):
            yield from re.findall(r"(?<!\S)--[a-z][\w-]*", text)


def simple_commands(text: str) -> Iterator[list[str]]:
    """The words of each command of one line, without comments. Nothing for a text that no shell could read."""
    reader = shlex.shlex(text, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    words: list[str] = []
    try:
        for word in reader:
            if word in _COMMAND_ENDS:
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:
        return
    yield words


def parse(shown: Shown) -> None:
    """Raises click.UsageError for a command that is not there, an option that it does not know, and a value it cannot take.

    Of a command in a text, what it leaves out is not asked for, and values may be placeholders.
    """
    words = list(shown.words) if shown.whole else [word.removesuffix("…") for word in shown.words if word != "…"]
    context = click.Context(headgate, info_name="headgate")
    command: click.Command = headgate
    while isinstance(command, click.Group):
        if not words or words[0].startswith("-"):
            _parse(command, words, context, whole=shown.whole)
            return
        found = command.get_command(context, words[0])
        if found is None:
            raise click.UsageError(f"no command {words[0]!r}", context)
        context, command, words = click.Context(found, context, words[0]), found, words[1:]
    if service := SERVICES.get(command.name or ""):
        _check_settings(service, words)
    else:
        _parse(command, words, context, whole=shown.whole)


def _parse(command: click.Command, words: Sequence[str], context: click.Context, *, whole: bool) -> None:
    if not whole or isinstance(command, click.Group):
        cut_short = [VALUE] if words and words[-1].startswith("--") and _takes_value(command, words[-1]) else []
        command.make_parser(context).parse_args([*words, *cut_short])
        return
    try:
        command.make_context(context.info_name, list(words), parent=context.parent)
    except click.exceptions.Exit:  # --help
        return


def _takes_value(command: click.Command, option: str) -> bool:
    return any(isinstance(each, click.Option) and option in each.opts and not each.is_flag for each in command.params)


def _check_settings(settings: type[ServiceSettings], words: Sequence[str]) -> None:
    known = {*settings_flags(settings), "--help"}
    for word in words:
        if word.startswith("--") and word.partition("=")[0] not in known:
            raise click.NoSuchOption(word)


def settings_flags(settings: type[ServiceSettings]) -> set[str]:
    """The options of a service."""
    return {f"--{name.replace('_', '-')}" for name in settings.model_fields} | {"--config"}


def all_options() -> set[str]:
    """The long options of every command and service."""
    return {flag for each in SERVICES.values() for flag in settings_flags(each)} | set(_options_of(headgate)) | {"--help"}


def _options_of(command: click.Command) -> Iterator[str]:
    context = click.Context(command)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield from (*parameter.opts, *parameter.secondary_opts)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _options_of(found)
