"""Asks somebody before a command does what cannot be undone."""

import click

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.output import Output


def confirm(output: Output, question: str) -> None:
    """Returns after a yes, which may come from a pipe. Raises click.Abort after a no, and CommandError where nobody answers."""
    if output.json:
        raise _unanswered(f"with --json, nobody is asked: {question}")
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort as aborted:
        if not isinstance(aborted.__context__, EOFError):
            raise
        click.echo(err=True)  # the question's line has no end yet
        raise _unanswered("nobody answered") from aborted
    if not agreed:
        raise click.Abort


def _unanswered(message: str) -> CommandError:
    return CommandError(message, fix="Add --yes.", code=ExitCode.USAGE)
