"""Access files for tests: who has which token, and which role."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from headgate_runtime.access.tokens import digest_of


def token_line(token: str, principal: str, expires: str = "") -> str:
    """For [tokens]. ``expires``: a time of TOML."""
    end = f", expires = {expires}" if expires else ""
    return f'"{digest_of(token)}" = {{ principal = "{principal}"{end} }}\n'


def role(to: str, *may: str, tables: Sequence[str] = ("*",), channels: Sequence[str] = ()) -> str:
    """One [[roles]]; ``to``: a principal, or "@" and a group."""
    names = "groups" if to.startswith("@") else "principals"
    text = (
        f"[[roles]]\n{names} = {json.dumps([to.removeprefix('@')])}\nmay = {json.dumps(may)}\ntables = {json.dumps([*tables])}\n"
    )
    return text + (f"channels = {json.dumps([*channels])}\n" if channels else "")


def access_text(tokens: Mapping[str, str], *roles: str, groups: Mapping[str, Sequence[str]] | None = None) -> str:
    """``tokens``: token to principal."""
    lines = "".join(token_line(token, principal) for token, principal in tokens.items())
    members = "".join(f"{group} = {json.dumps([*names])}\n" for group, names in (groups or {}).items())
    return f"[tokens]\n{lines}\n[groups]\n{members}\n" + "\n".join(roles)


def write_access(path: Path, tokens: Mapping[str, str], *roles: str) -> Path:
    """Without roles each principal may write and create every table."""
    given = roles or tuple(role(principal, "write", "create") for principal in dict.fromkeys(tokens.values()))
    path.write_text(access_text(tokens, *given), encoding="utf-8")
    return path
