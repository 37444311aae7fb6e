"""Exit codes: what a script may do next, without reading a message."""

from collections.abc import Mapping
from enum import IntEnum


class ExitCode(IntEnum):
    """Stable; new ones are added at the end."""

    OK = 0
    PROBLEMS = 1
    USAGE = 2
    FIX_CALL = 3
    RETRY_LATER = 4
    OPERATOR = 5
    REOPEN = 6
    INTERRUPTED = 130


MEANING: Mapping[ExitCode, str] = {
    ExitCode.OK: "done, and nothing wrong was found",
    ExitCode.PROBLEMS: "done, and something wrong was found (verify) or left out (compact); the output says what",
    ExitCode.USAGE: "the command line is wrong",
    ExitCode.FIX_CALL: "the request is wrong and stays wrong: a table, file, schema or value",
    ExitCode.RETRY_LATER: "not now: nothing was done, the same command may succeed later",
    ExitCode.OPERATOR: "a person has to change something first",
    ExitCode.REOPEN: "broke off with an unknown outcome: run it again, it goes on where it was",
    ExitCode.INTERRUPTED: "Ctrl-C",
}


def exit_codes_help() -> str:
    """For ``--help``; click keeps the lines of a paragraph that begins with this mark."""
    lines = [f"  {code.value:>3}  {MEANING[code]}" for code in ExitCode]
    return "\b\nExit codes:\n" + "\n".join(lines)
