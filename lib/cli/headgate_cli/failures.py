"""From an error to what the command says and its exit code."""

from dataclasses import dataclass

import click

from headgate_cli.exits import ExitCode

_START_ONE = "Start one with `headgate dev`, or say where it is: --connect HOST:PORT, or HEADGATE_CONNECT."


class CommandError(Exception):
    """A refusal of the command itself, or of the cluster. ``fix``: the next step; ``kind``: its name, for programs."""

    def __init__(self, message: str, *, fix: str, code: ExitCode, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind or code.name
        self.message = message
        self.fix = fix
        self.code = code


@dataclass(frozen=True, slots=True)
class Failure:
    """``kind``: the error's class or code, for programs."""

    message: str
    fix: str
    kind: str
    code: ExitCode


def describe(error: BaseException) -> Failure | None:
    """None for what nobody foresaw: a defect, whose traceback is worth more than a sentence."""
    kind = type(error).__name__
    if isinstance(error, CommandError):
        return Failure(error.message, error.fix, error.kind, error.code)
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "headgate"
        return Failure(error.format_message(), f"See {path} --help.", kind, ExitCode.USAGE)
    if isinstance(error, click.ClickException):
        return Failure(error.format_message(), "", kind, ExitCode.USAGE)
    if isinstance(error, OSError) and error.filename:
        return Failure(f"{error.filename}: {error.strerror}", "Check the path and its permissions.", kind, ExitCode.FIX_CALL)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return Failure("interrupted", "", kind, ExitCode.INTERRUPTED)
    return _sorted(error)


def _sorted(error: BaseException) -> Failure | None:
    """The library's and the SDK's errors are sorted by what the caller can do; so are the exit codes."""
    import headgate.errors as sdk
    from headgate_tables import errors as tables

    codes: dict[type[BaseException], ExitCode] = {
        sdk.RetryLater: ExitCode.RETRY_LATER,
        sdk.Resume: ExitCode.REOPEN,
        sdk.FixCall: ExitCode.FIX_CALL,
        sdk.GiveUp: ExitCode.OPERATOR,
        tables.StoreDeniedError: ExitCode.OPERATOR,  # a script that only tries again would do so for ever
        tables.RetryLater: ExitCode.RETRY_LATER,
        tables.ReopenTable: ExitCode.REOPEN,
        tables.FixCall: ExitCode.FIX_CALL,
        tables.OperatorNeeded: ExitCode.OPERATOR,
    }
    if not isinstance(error, sdk.HeadgateError | tables.TablesError):
        return None
    fix = f"{error.fix} {_START_ONE}" if isinstance(error, sdk.UnavailableError) else error.fix
    return Failure(error.message, fix, type(error).__name__, next(codes[kind] for kind in codes if isinstance(error, kind)))
