"""The command ``headgate``. A subcommand is imported when it is called, so that each starts fast."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

import click
from click.shell_completion import CompletionItem

from headgate_cli.exits import ExitCode, exit_codes_help
from headgate_cli.failures import describe_error
from headgate_cli.output import Output

_COMMANDS: Mapping[str, str] = {
    "dev": "headgate_cli.dev.command:dev",
    "coordinator": "headgate_cli.services:coordinator",
    "writer": "headgate_cli.services:writer",
    "compactor": "headgate_cli.services:compactor",
    "table": "headgate_cli.table.command:table",
    "load": "headgate_cli.load.command:load",
    "bulk-load": "headgate_cli.bulk_load.command:bulk_load",
    "bootstrap": "headgate_cli.bulk_load.bootstrap:bootstrap",
    "status": "headgate_cli.status.command:status",
    "verify": "headgate_cli.verify:verify",
    "compact": "headgate_cli.maintenance.compact:compact",
    "clean": "headgate_cli.maintenance.clean:clean",
    "archive": "headgate_cli.maintenance.clean:archive",
    "savepoint": "headgate_cli.maintenance.savepoint:savepoint",
    "restore": "headgate_cli.maintenance.savepoint:restore",
    "configure": "headgate_cli.maintenance.configure:configure",
    "access": "headgate_cli.access.command:access",
    "kubernetes": "headgate_cli.kubernetes.command:kubernetes",
    "completion": "headgate_cli.completion:completion",
}


class _ReaderGoneError(Exception):
    """The reader of stdout (head, less) has enough. click would end the program with 1 on a BrokenPipeError."""


class _Commands(click.Group):
    """The subcommands, in the order in which a newcomer needs them."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            found: object = super().invoke(ctx)
            sys.stdout.flush()
            return found
        except BrokenPipeError as error:
            raise _ReaderGoneError from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names alone: their texts would import every command at each Tab."""
        names = [CompletionItem(name) for name in _COMMANDS if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.group(
    cls=_Commands, epilog=exit_codes_help(), context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda *asked: _version(*asked),
    help="Show the version.",
)
def headgate() -> None:
    """Rows over gRPC into Apache Hudi tables, exactly once.

    \b
    Try it:
      headgate dev                                             a cluster on this machine
      headgate load flights.csv --table flights --create --key id
      headgate table scan flights --limit 5
      headgate status --watch

    Commands connect to a coordinator: --connect HOST:PORT, or HEADGATE_CONNECT. With --json they print one object a line.
    """  # noqa: D301 - click wants the backspace


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        try:
            found = version("headgate-cli")
        except PackageNotFoundError:
            found = "(source tree, not installed)"
        click.echo(f"headgate {found}")
        ctx.exit()


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit code. Raises errors that are defects."""
    own = list(arguments)
    output = Output(json="--json" in (own[: own.index("--")] if "--" in own else own))
    try:
        return int(headgate.main(own, prog_name="headgate", standalone_mode=False, obj=output) or ExitCode.OK)
    except _ReaderGoneError:
        sys.stdout = None  # or the interpreter would print an error when it flushes
        return ExitCode.OK
    except (Exception, KeyboardInterrupt) as error:
        failure = describe_error(error)
        if failure is None:
            raise
        output.print_error(failure.message, failure.fix, failure.kind, failure.code)
        return failure.code


def main() -> None:
    """The entry point of the installed command."""
    sys.exit(run(sys.argv[1:]))
