"""A line for a further token in an access file that people wrote: all else in it stays, to the line's end. Pure."""

import re
from datetime import UTC, datetime
from typing import Final

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_runtime.access.file import AccessFileError, read_access_file

_HEADER: Final = re.compile(r"""^[ \t]*\[[ \t]*(tokens|"tokens"|'tokens')[ \t]*\][ \t]*(#[^\r\n]*)?(\r?\n|\Z)""", re.MULTILINE)


def with_token(text: str, digest: str, principal: str, end: datetime) -> str:
    """The access file with a line for a further token of ``principal``. Lines of its earlier ones that have no end get ``end``.

    Raises CommandError for a file that takes no line, because it is damaged or has its tokens in another form.
    """
    made = _extended(_ending(text, principal, end), digest, principal)
    try:
        read_access_file(made)
    except AccessFileError as error:
        raise CommandError(
            f"the access file takes no further token: with its line, {error}",
            fix="Correct it, with each token on a line below a line [tokens], and run this again. The file was not changed.",
            code=ExitCode.OPERATOR,
            kind="AccessFileError",
        ) from error
    return made


def _ending(text: str, principal: str, end: datetime) -> str:
    own = re.compile(rf'("sha256:[0-9a-f]{{64}}" = {{ principal = "{re.escape(principal)}") }}')
    return own.sub(rf"\1, expires = {end.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ} }}", text)


def _extended(text: str, digest: str, principal: str) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    line = f'"{digest}" = {{ principal = "{principal}" }}{newline}'
    header = _HEADER.search(text)
    if header is None:
        return f"[tokens]{newline}{line}{text}"
    return text[: header.end()] + ("" if header[3] else newline) + line + text[header.end() :]
