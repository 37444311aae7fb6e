"""The access file: tokens, groups and roles, read from TOML. Every mistake is an error that names its line.

[tokens]
"sha256:9f86d0…" = { principal = "loader", expires = 2027-01-31T00:00:00Z }

[groups]
ingest = ["loader", "ci"]

[[roles]]
groups = ["ingest"]
may = ["write"]
tables = ["raw_*"]
channels = ["{principal}/"]

[[quotas]]
groups = ["ingest"]
rows_per_s = 50000

[end]
"""

import math
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from headgate_runtime.access.identity import RESERVED
from headgate_runtime.access.quotas import KEYS as QUOTAS
from headgate_runtime.access.quotas import NO_LIMIT, Quota
from headgate_runtime.access.rights import OWN, Policy, Right, Role

DIGEST: Final = "sha256:"
"""Stands before a token's digest, in 64 lower-case hexadecimal digits."""

_DIGEST: Final = re.compile(rf"{DIGEST}[0-9a-f]{{64}}")
_NAME: Final = re.compile(r"[!-~]{1,128}")
_PATTERN: Final = re.compile(r"[A-Za-z0-9_.*?-]{1,128}")
_END: Final = re.compile(r"^[ \t]*\[[ \t]*end[ \t]*\][ \t]*(#[^\n]*)?(\r?\n[ \t]*(#[^\n]*)?)*\Z", re.MULTILINE)


class AccessFileError(ValueError):
    """The file says something that is not understood. ``line`` counts from 1; 0: the reader of TOML names the place."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.line = line


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """One token, by its digest. ``expires_ms``: ms since the epoch; None: never."""

    digest: str
    principal: str
    expires_ms: int | None
    line: int

    @property
    def credential(self) -> str:
        """Names the token in the audit log and in lists, and is no secret."""
        return self.digest[: len(DIGEST) + 12]


@dataclass(frozen=True, slots=True)
class AccessFile:
    """All that the file says. Of ``tokens`` a principal may have several. ``has_end``: it ends with [end], so it is whole."""

    policy: Policy = field(default_factory=Policy)
    tokens: Sequence[TokenEntry] = ()
    quotas: Sequence[Quota] = ()
    has_end: bool = False

    def check_follows(self, before: "AccessFile") -> None:
        """Raises AccessFileError if it lacks the [end] that the file had ``before``: it was cut, or is being written."""
        if before.has_end and not self.has_end:
            raise AccessFileError(0, "the file ends before [end], which it had: write all of it, with [end] on the last line")


def read_access_file(text: str) -> AccessFile:
    """Raises AccessFileError."""
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also of numbers and lists that are too long or too deep for Python
        raise AccessFileError(0, str(error)) from error
    _only(found, ("tokens", "groups", "roles", "quotas", "end"), 1, "the file")
    lines = _digest_lines(text)
    tokens = [_token(key, value, lines.get(key) or _line_of(text, key)) for key, value in _table(found, "tokens", text).items()]
    groups = {key: _names(value, _line_of(text, key), key) for key, value in _table(found, "groups", text).items()}
    policy = Policy(_roles(found.get("roles", []), text), _by_principal(groups))
    return AccessFile(policy, tokens, _quotas(found.get("quotas", []), text), _has_end(found, text))


def _has_end(found: Mapping[str, object], text: str) -> bool:
    if "end" not in found:
        return False
    if found["end"] != {} or not _END.search(text):
        raise AccessFileError(_line_of(text, "end"), "[end] is empty, and nothing but comments stands behind it")
    return True


def _token(key: str, value: object, line: int) -> TokenEntry:
    if not _DIGEST.fullmatch(key):
        raise AccessFileError(line, f'want "{DIGEST}" and 64 hexadecimal digits, as `headgate access token` prints them')
    entry = _mapping(value, line, "a token's entry")
    _only(entry, ("principal", "expires"), line, "a token's entry")
    return TokenEntry(key, _principal(entry.get("principal"), line), _expiry(entry.get("expires"), line), line)


def _expiry(value: object, line: int) -> int | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise AccessFileError(line, "expires wants a time with its zone and no quotation marks, such as 2027-01-31T00:00:00Z")
    return int(value.timestamp() * 1000)


def _roles(value: object, text: str) -> Sequence[Role]:
    return [_role(entry, line) for entry, line in _entries(value, "roles", text)]


def _entries(value: object, key: str, text: str) -> Sequence[tuple[object, int]]:
    """Each with the line on which it begins."""
    entries = value if isinstance(value, list) else [value]
    begins = re.compile(rf"^[ \t]*\[\[[ \t]*{key}[ \t]*\]\]", re.MULTILINE)
    lines = [text.count("\n", 0, found.start()) + 1 for found in begins.finditer(text)]
    if len(lines) != len(entries):
        raise AccessFileError(_line_of(text, key), f"begin each {key[:-1]} with [[{key}]] on a line of its own")
    return list(zip(entries, lines, strict=True))


def _quotas(value: object, text: str) -> Sequence[Quota]:
    return [_quota(entry, line) for entry, line in _entries(value, "quotas", text)]


def _quota(value: object, line: int) -> Quota:
    entry = _mapping(value, line, "a quota")
    _only(entry, ("principals", "groups", *QUOTAS), line, "a quota")
    principals, groups = _subjects(entry, line)
    given = {key: _limit(entry[key], line, key) for key in QUOTAS if key in entry}
    if not ((principals or groups) and given):
        raise AccessFileError(line, f"the quota wants principals or groups, and one or more of {', '.join(QUOTAS)}")
    return Quota(line, given, principals, groups)


def _limit(value: object, line: int, what: str) -> float:
    if value == NO_LIMIT:
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 1 << 31:
        most = (1 << 31) - 1
        raise AccessFileError(line, f'{what} is {str(value)[:40]!r}: want a whole number from 1 to {most:,}, or "{NO_LIMIT}"')
    return value


def _subjects(entry: Mapping[str, object], line: int) -> tuple[frozenset[str], frozenset[str]]:
    """Principals and groups of a role or a quota."""
    return (
        frozenset(_principal(name, line) for name in _texts(entry.get("principals", []), line, "principals")),
        frozenset(_names(entry.get("groups", []), line, "groups")),
    )


def _role(value: object, line: int) -> Role:
    entry = _mapping(value, line, "a role")
    _only(entry, ("principals", "groups", "may", "tables", "channels"), line, "a role")
    rights = frozenset(_right(name, line) for name in _texts(entry.get("may", []), line, "may"))
    role = Role(
        line,
        rights,
        tuple(_pattern(name, line) for name in _texts(entry.get("tables", []), line, "tables")),
        *_subjects(entry, line),
        tuple(_prefix(name, line) for name in _texts(entry.get("channels", []), line, "channels")),
    )
    if not (role.principals or role.groups):
        raise AccessFileError(line, "the role names nobody: give principals or groups")
    if not (role.rights and role.tables):
        raise AccessFileError(line, f"the role wants may, one or more of {', '.join(Right)}, and tables")
    if "channels" in entry and not (role.channels and rights & {Right.WRITE, Right.ADMIN}):
        raise AccessFileError(line, "channels holds one prefix or more, and goes with write or admin")
    return role


def _right(name: str, line: int) -> Right:
    try:
        return Right(name)
    except ValueError:
        raise AccessFileError(line, f"may holds {name!r}: want one or more of {', '.join(Right)}") from None


def _pattern(name: str, line: int) -> str:
    if not _PATTERN.fullmatch(name):
        raise AccessFileError(line, f"tables holds {name!r}: want letters, digits, '_', '-', '.', and the wildcards * and ?")
    return name


def _prefix(name: str, line: int) -> str:
    if not name or not name.isprintable() or "{principal}" in name.replace(OWN, "", 1):
        raise AccessFileError(line, f"channels holds {name!r}: want printable characters, and a slash behind {{principal}}")
    return name


def _principal(value: object, line: int) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise AccessFileError(line, f"the principal {value!r} is no name: want 1 to 128 visible ASCII characters without spaces")
    if value in RESERVED:
        raise AccessFileError(line, f"the principal {value!r} is the cluster's own: choose another name")
    return value


def is_principal(name: str) -> bool:
    """Whether the file may give a token to a principal of this name."""
    return name not in RESERVED and _NAME.fullmatch(name) is not None


def _names(value: object, line: int, what: str) -> Sequence[str]:
    names = _texts(value, line, what)
    for name in names:
        if not _NAME.fullmatch(name):
            raise AccessFileError(line, f"{what} holds {name!r}: want 1 to 128 visible ASCII characters without spaces")
    return names


def _by_principal(groups: Mapping[str, Sequence[str]]) -> Mapping[str, frozenset[str]]:
    principals = {principal for members in groups.values() for principal in members}
    sets = {group: frozenset(members) for group, members in groups.items()}
    return {each: frozenset(group for group, members in sets.items() if each in members) for each in principals}


# --- values of TOML ---


def _only(entry: Mapping[str, object], keys: Collection[str], line: int, what: str) -> None:
    if unknown := sorted(entry.keys() - set(keys)):
        raise AccessFileError(line, f"{what} has an unknown key {unknown[0]!r}: want {', '.join(keys)}")


def _table(found: Mapping[str, object], key: str, text: str) -> Mapping[str, object]:
    return _mapping(found.get(key, {}), _line_of(text, key), f"[{key}]")


def _mapping(value: object, line: int, what: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise AccessFileError(line, f"{what} is not a table")
    return value


def _texts(value: object, line: int, what: str) -> Sequence[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise AccessFileError(line, f'{what} wants a list of texts, such as ["a", "b"]')
    return value


def _digest_lines(text: str) -> Mapping[str, int]:
    """Of all digests at once: there may be thousands."""
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for digest in _DIGEST.findall(line.partition("#")[0]):
            lines.setdefault(digest, number)
    return lines


def _line_of(text: str, key: str) -> int:
    """The first line on which the key stands; the reader of TOML does not say."""
    for number, line in enumerate(text.splitlines(), 1):
        if key in line.partition("#")[0]:
            return number
    return 1
