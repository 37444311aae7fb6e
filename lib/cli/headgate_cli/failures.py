"""Turns an error into a command's message and exit code."""

from dataclasses import dataclass

import click

from headgate_cli.exits import ExitCode
from headgate_cli.usage import help_for, message_of
from headgate_cli.wording import for_command_line

_START_ONE = "Start one with `headgate dev`, or give its address: --connect HOST:PORT, or HEADGATE_CONNECT."


class CommandError(Exception):
    """An error of the command itself. ``fix``: the next step; ``kind``: the error's name, for programs."""

    def __init__(self, message: str, *, fix: str, code: ExitCode, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind or code.name
        self.message = message
        self.fix = fix
        self.code = code


@dataclass(frozen=True, slots=True)
class CommandFailure:
    """``kind``: the error's class or code, for programs."""

    message: str
    fix: str
    kind: str
    code: ExitCode


def describe_error(error: BaseException) -> CommandFailure | None:
    """What to print for an error, and its exit code; None for a defect, whose traceback says more than a sentence."""
    kind = type(error).__name__
    if isinstance(error, CommandError):
        return CommandFailure(error.message, error.fix, error.kind, error.code)
    if isinstance(error, click.UsageError):
        return CommandFailure(message_of(error), help_for(error), kind, ExitCode.USAGE)
    if isinstance(error, click.ClickException):
        return CommandFailure(error.format_message(), "", kind, ExitCode.USAGE)
    if isinstance(error, OSError) and error.filename:
        return CommandFailure(
            f"{error.filename}: {error.strerror}", "Check the path and its permissions.", kind, ExitCode.FIX_CALL
        )
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return CommandFailure("interrupted", "", kind, ExitCode.INTERRUPTED)
    return _by_next_step(error)


def _by_next_step(error: BaseException) -> CommandFailure | None:
    """Errors of the SDK and of the table library are sorted by the caller's next step, and so are the exit codes."""
    import headgate.errors as sdk
    from headgate.unreachable import NOBODY_LISTENS
    from headgate_tables import errors as tables

    codes: dict[type[BaseException], ExitCode] = {
        sdk.NotCommittedError: ExitCode.REOPEN,  # rows before these may be committed
        sdk.RetryLater: ExitCode.RETRY_LATER,
        sdk.Resume: ExitCode.REOPEN,
        sdk.FixCall: ExitCode.FIX_CALL,
        sdk.GiveUp: ExitCode.OPERATOR,
        tables.StoreDeniedError: ExitCode.OPERATOR,  # a script that only retries would never end
        tables.RetryLater: ExitCode.RETRY_LATER,
        tables.ReopenTable: ExitCode.REOPEN,
        tables.FixCall: ExitCode.FIX_CALL,
        tables.OperatorNeeded: ExitCode.OPERATOR,
    }
    if not isinstance(error, sdk.HeadgateError | tables.TablesError):
        return None
    fix = for_command_line(error.fix) + (f" {_START_ONE}" if NOBODY_LISTENS in error.message else "")
    code = next(codes[kind] for kind in codes if isinstance(error, kind))
    return CommandFailure(for_command_line(error.message), fix, type(error).__name__, code)
