"""`headgate coordinator`, `headgate writer` and `headgate compactor`: a service replaces this process."""

import os
import sys

import click

_SETTINGS = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


@click.command("coordinator", short_help="Run a coordinator.", context_settings=_SETTINGS, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def coordinator(arguments: tuple[str, ...]) -> None:
    """Runs a coordinator; `headgate coordinator --help` lists its settings."""
    _become("headgate_coordinator", arguments)


@click.command("writer", short_help="Run a writer.", context_settings=_SETTINGS, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def writer(arguments: tuple[str, ...]) -> None:
    """Runs a writer; `headgate writer --help` lists its settings."""
    _become("headgate_writer", arguments)


@click.command("compactor", short_help="Run a compactor.", context_settings=_SETTINGS, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def compactor(arguments: tuple[str, ...]) -> None:
    """Runs a compactor; `headgate compactor --help` lists its settings."""
    _become("headgate_compactor", arguments)


def _become(module: str, arguments: tuple[str, ...]) -> None:
    """Replaces this process by the service, so that signals and the exit code are the service's own."""
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])  # noqa: S606 - no shell is wanted
