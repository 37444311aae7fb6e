"""A group of commands that imports each one when it is called, not when the group's help lists it."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

import click
from click.shell_completion import CompletionItem


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command is, and what the list of commands says of it.

    ``path``: "module:name". ``about``: the command's own ``short_help`` once more (a test compares them): to read that one, the
    list would import every command, which takes two seconds of CPU.
    """

    path: str
    about: str

    def load(self) -> click.Command:
        """Imports the command."""
        module, _, name = self.path.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


class LazyGroup(click.Group):
    """Its commands are those of ``places``, in that order: the one in which a newcomer needs them."""

    places: Mapping[str, Place] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names."""
        return list(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Imports the command of that name."""
        place = self.places.get(cmd_name)
        return place.load() if place else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Writes the list of commands as click does, and imports none."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.about) for name, place in self.places.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names, with what they are for shells that show it, then the group's own options."""
        names = [CompletionItem(name, help=place.about) for name, place in self.places.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]
