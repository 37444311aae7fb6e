"""What helps after a wrong command line: the name that was probably meant, an example, and where all options are."""

import re
from collections.abc import Iterable

import click

from headgate_tables.near_names import did_you_mean

_EXAMPLES = re.compile(r"^\s*Examples?:\n((?:[ \t]+headgate .*(?:\n|$)|[ \t]+[A-Z_]+=.*(?:\n|$))+)", re.MULTILINE)


def message_of(error: click.UsageError) -> str:
    """What is wrong, without click's guesses, which name what is not near at all."""
    if isinstance(error, click.NoSuchOption | click.NoSuchCommand):
        return error.message
    return error.format_message()


def help_for(error: click.UsageError) -> str:
    """What to write instead."""
    path = error.ctx.command_path if error.ctx else "headgate"
    near = did_you_mean(*_meant(error))
    example = _example_of(error.ctx.command, near) if error.ctx else ""
    return f"{near}{example}See {path} --help."


def _meant(error: click.UsageError) -> tuple[str, Iterable[str]]:
    """What was written, and what there is."""
    ctx = error.ctx
    if isinstance(error, click.NoSuchOption) and ctx is not None:
        return error.option_name, [name for each in ctx.command.get_params(ctx) for name in each.opts if name.startswith("--")]
    if isinstance(error, click.NoSuchCommand) and ctx is not None and isinstance(ctx.command, click.Group):
        return error.command_name, ctx.command.list_commands(ctx)
    return "", []


def _example_of(command: click.Command, near: str) -> str:
    """The first example of the command's help; none where the right name is known."""
    found = _EXAMPLES.search(command.help or "")
    return f"Example: {found[1].splitlines()[0].strip()}. " if found and not near else ""
