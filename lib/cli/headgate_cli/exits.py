"""Exit codes: they tell a script what to do next."""

from collections.abc import Mapping
from enum import IntEnum


class ExitCode(IntEnum):
    """Stable: codes keep their meaning, new ones get new numbers."""

    OK = 0
    PROBLEMS = 1
    USAGE = 2
    FIX_CALL = 3
    RETRY_LATER = 4
    OPERATOR = 5
    REOPEN = 6
    INTERRUPTED = 130


MEANING: Mapping[ExitCode, str] = {
    ExitCode.OK: "done, no problem found",
    ExitCode.PROBLEMS: "done, but problems were found (verify), slices left out (compact), rows came meanwhile (table delete) or "
    "a right is missing (access check)",
    ExitCode.USAGE: "the command line is wrong",
    ExitCode.FIX_CALL: "the request is wrong: its table, file, schema or value",
    ExitCode.RETRY_LATER: "not now: nothing was done, the same command may succeed later",
    ExitCode.OPERATOR: "a person has to change something first",
    ExitCode.REOPEN: "broke off: run the same command again, it continues where it stopped",
    ExitCode.INTERRUPTED: "Ctrl-C",
}


def exit_codes_help() -> str:
    """The list for ``--help``; click keeps the lines of a paragraph that begins with a backspace."""
    lines = [f"  {code.value:>3}  {MEANING[code]}" for code in ExitCode]
    return "\b\nExit codes:\n" + "\n".join(lines)
