"""The command ``headgate``. A subcommand is imported when it is called, so that each starts fast."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from headgate_cli.exits import ExitCode, exit_codes_help
from headgate_cli.failures import describe_error
from headgate_cli.lazy_group import LazyGroup, Place
from headgate_cli.logged import warnings_printed
from headgate_cli.output import Output
from headgate_runtime.without_pandas import run_without_pandas

_ON_SPARK: Final = ("bulk-load", "bootstrap")
"""Commands in which PySpark asks for pandas."""


class _ReaderGoneError(Exception):
    """The reader of stdout (head, less) has enough. click would end the program with 1 on a BrokenPipeError."""


class _Commands(LazyGroup):
    places: Mapping[str, Place] = {
        "dev": Place("headgate_cli.dev.command:dev", "Run a cluster on this machine."),
        "coordinator": Place("headgate_cli.services:coordinator", "Run a coordinator."),
        "writer": Place("headgate_cli.services:writer", "Run a writer."),
        "compactor": Place("headgate_cli.services:compactor", "Run a compactor."),
        "table": Place("headgate_cli.table.command:table", "Create, inspect and read tables."),
        "load": Place("headgate_cli.load.command:load", "Load files into a table, exactly once."),
        "bulk-load": Place("headgate_cli.bulk_load.command:bulk_load", "Load what is too big for one process, through Spark."),
        "bootstrap": Place("headgate_cli.bulk_load.bootstrap:bootstrap", "Copy a table of another kind, through Spark."),
        "status": Place("headgate_cli.status.command:status", "Show tables, processes and alarms."),
        "verify": Place("headgate_cli.verify:verify", "Compare a table with its commit log."),
        "compact": Place("headgate_cli.maintenance.compact:compact", "Merge log files into base files now."),
        "clean": Place("headgate_cli.maintenance.clean:clean", "Delete replaced file slices now."),
        "archive": Place("headgate_cli.maintenance.clean:archive", "Move old instants into the history now."),
        "savepoint": Place("headgate_cli.maintenance.savepoint:savepoint", "Keep the newest commit of a table."),
        "restore": Place("headgate_cli.maintenance.savepoint:restore", "Take a table back to a savepoint."),
        "configure": Place("headgate_cli.maintenance.configure:configure", "Show or change settings of a table."),
        "access": Place("headgate_cli.access.command:access", "Tokens, and who may do what."),
        "kubernetes": Place("headgate_cli.kubernetes.command:kubernetes", "What the Helm chart's Jobs run."),
        "completion": Place("headgate_cli.completion:completion", "Print a script for completion in your shell."),
    }

    def invoke(self, ctx: click.Context) -> object:
        try:
            found: object = super().invoke(ctx)
            sys.stdout.flush()
            return found
        except BrokenPipeError as error:
            raise _ReaderGoneError from error


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
        from importlib.metadata import PackageNotFoundError, version

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
        with warnings_printed(output):
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
    _open_closed_streams()
    if not {*_ON_SPARK} & {*sys.argv[1:2]}:
        run_without_pandas()
    sys.exit(run(sys.argv[1:]))


def _open_closed_streams() -> None:
    """A caller may have closed some (``>&-``): nothing is read then, and nobody sees what is written. Before anything else is
    opened, which would get the number of a closed stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - until the process ends
