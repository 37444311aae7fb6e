"""Entries of the access file as `headgate access` shows them."""

import math
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TypedDict, TypeVar

import click

from headgate_runtime.access.file import TokenEntry
from headgate_runtime.access.quotas import KEYS, NO_LIMIT, Quota, Usage
from headgate_runtime.access.rights import Role

_Command = TypeVar("_Command", bound=Callable[..., object])


class ClaimNames(TypedDict):
    """The services' settings about signed tokens, of the same names."""

    jwt_prefix: str
    jwt_principal: str
    jwt_groups: str


def claim_options(command: _Command) -> _Command:
    """Options of ``ClaimNames``."""
    for name, default, text in (
        ("jwt-groups", "groups", "The claim of signed tokens that lists groups, as the services have it."),
        ("jwt-principal", "sub", "The claim of signed tokens that names the principal, as the services have it."),
        ("jwt-prefix", "jwt:", "What stands before names of signed tokens, as the services have it."),
    ):
        variable = f"HEADGATE_{name.upper().replace('-', '_')}"
        click.option(f"--{name}", default=default, envvar=variable, show_default=True, metavar="NAME", help=text)(command)
    return command


def has_expired(entry: TokenEntry, now_ms: int) -> bool:
    """``now_ms``: ms since the epoch."""
    return entry.expires_ms is not None and now_ms >= entry.expires_ms


def token_record(entry: TokenEntry, now_ms: int) -> dict[str, object]:
    """Without the token's whole digest."""
    end = datetime.fromtimestamp(entry.expires_ms / 1000, UTC).isoformat() if entry.expires_ms is not None else None
    return {
        "line": entry.line,
        "principal": entry.principal,
        "token": entry.credential,
        "expires": end,
        "expired": has_expired(entry, now_ms),
    }


def role_record(role: Role, claims: ClaimNames) -> dict[str, object]:
    """``from_claims``: by which claims of a signed token one gets the role."""
    return {
        "line": role.line,
        **_subjects(role, claims),
        "may": sorted(role.rights),
        "tables": [*role.tables],
        "channels": [*role.channels],
    }


def quota_record(quota: Quota, claims: ClaimNames) -> dict[str, object]:
    """Figures that it does not have are None."""
    limits = {name: NO_LIMIT if most == math.inf else int(most) for name, most in quota.limits.items()}
    return {"line": quota.line, **_subjects(quota, claims), **{name: limits.get(name) for name in KEYS}}


def usage_record(usage: Usage) -> dict[str, int]:
    """Those figures that are limited."""
    return {name: int(most) for name, most in asdict(usage).items() if most != math.inf}


def _subjects(entry: Role | Quota, claims: ClaimNames) -> dict[str, object]:
    names = [(claims["jwt_principal"], each) for each in sorted(entry.principals)]
    names += [(claims["jwt_groups"], each) for each in sorted(entry.groups)]
    prefix = claims["jwt_prefix"]
    return {
        "principals": sorted(entry.principals),
        "groups": sorted(entry.groups),
        "from_claims": [f"{claim}={name.removeprefix(prefix)}" for claim, name in names if name.startswith(prefix)],
    }
