"""What an identity may do: roles on tables, and the decision about one right on one table. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, cached_property
from typing import Final, TypeAlias

from headgate_runtime.access.identity import CallerKind, Identity

OWN: Final = "{principal}/"
"""In a prefix of channels: the caller's own name and a slash."""


class Right(StrEnum):
    """What may be done to a table. Each includes READ, and ADMIN all others."""

    READ = "read"
    WRITE = "write"
    CREATE = "create"
    OPERATE = "operate"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Role:
    """Principals and groups that have rights on tables. ``line``: where the access file says so.

    ``tables``: names, in which ``*`` stands for any characters and ``?`` for one. ``channels``: prefixes of the channels through
    which rows may be written; without any, every channel.
    """

    line: int
    rights: frozenset[Right]
    tables: Sequence[str]
    principals: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    channels: Sequence[str] = ()

    def has_right(self, right: Right) -> bool:
        """On its tables."""
        return right is Right.READ or right in self.rights or Right.ADMIN in self.rights

    def names_table(self, table: str) -> bool:
        """Whether a pattern fits the whole name."""
        return any(_pattern(each).fullmatch(table) for each in self.tables)

    def prefixes_of(self, principal: str) -> Sequence[str]:
        """Of its channels. A principal with a slash in its name has none of its own, as it could be another's prefix."""
        return [each.replace(OWN, f"{principal}/") for each in self.channels if OWN not in each or "/" not in principal]

    def takes_channel(self, channel: str, principal: str) -> bool:
        """Whether rows may come through this channel."""
        return not self.channels or channel.startswith(tuple(self.prefixes_of(principal)))


@dataclass(frozen=True, slots=True)
class Allowed:
    """``role``: the first that allows it; None where no role is asked for."""

    role: Role | None = None


@dataclass(frozen=True, slots=True)
class Denied:
    """The identity is known and lacks a right. ``message`` and ``fix`` go to the caller."""

    message: str
    fix: str


Decision: TypeAlias = Allowed | Denied


@dataclass(frozen=True)
class Policy:
    """All roles, in the order of the file, and the groups that it puts principals into. A decision looks at the caller's roles
    alone, however many there are.
    """

    roles: Sequence[Role] = ()
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def decide(self, identity: Identity, right: Right, table: str | None, channel: str | None = None) -> Decision:
        """``table`` None: is there any table on which it has the right? ``channel`` None: through any channel."""
        match identity.kind:
            case CallerKind.ANONYMOUS:
                return _denied(identity, right, table)
            case CallerKind.SERVICE:
                return Allowed() if right is Right.READ else _denied(identity, right, table)
            case CallerKind.CLIENT:
                return self._decide_client(identity, right, table, channel)

    def _decide_client(self, identity: Identity, right: Right, table: str | None, channel: str | None) -> Decision:
        fitting = [
            role
            for role in self.roles_of(identity)
            if role.has_right(right) and (table is None or role.names_table(table))
        ]  # fmt: skip
        for role in fitting:
            if channel is None or role.takes_channel(channel, identity.principal):
                return Allowed(role)
        if fitting and channel is not None:
            return _wrong_channel(identity, table, channel, fitting)
        return _denied(identity, right, table)

    def roles_of(self, identity: Identity) -> Sequence[Role]:
        """In the order of the file."""
        groups = self.groups_of(identity)
        positions = {*self._by_principal.get(identity.principal, ())}.union(*(self._by_group.get(each, ()) for each in groups))
        return [self.roles[position] for position in sorted(positions)]

    def groups_of(self, identity: Identity) -> frozenset[str]:
        """By its authenticator and by the access file."""
        return identity.groups | self.groups.get(identity.principal, frozenset())

    @cached_property
    def _by_principal(self) -> Mapping[str, Sequence[int]]:
        return _positions(role.principals for role in self.roles)

    @cached_property
    def _by_group(self) -> Mapping[str, Sequence[int]]:
        return _positions(role.groups for role in self.roles)


def _positions(names_of_roles: Iterable[Iterable[str]]) -> Mapping[str, Sequence[int]]:
    found: dict[str, list[int]] = {}
    for position, names in enumerate(names_of_roles):
        for name in names:
            found.setdefault(name, []).append(position)
    return found


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    """Policies hold few patterns, and the same ones again after each reading of the file."""
    return re.compile("".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in pattern), re.DOTALL)


def _denied(identity: Identity, right: Right, table: str | None) -> Denied:
    return Denied(
        f"{shortened(identity.principal)} lacks the right `{right}` on {_where(table)}",
        f"Use another principal's token, or have the operators give this one a role with `{right}` on the table.",
    )


def _wrong_channel(identity: Identity, table: str | None, channel: str, roles: Sequence[Role]) -> Denied:
    prefixes = sorted({prefix for role in roles for prefix in role.prefixes_of(identity.principal)})
    own = " or ".join(shortened(prefix) for prefix in prefixes) or "a prefix that it does not have"
    where = _where(table)
    return Denied(
        f"{shortened(identity.principal)} may not write to {where} through the channel {shortened(channel)}",
        f"Begin the channel's name with {own}.",
    )


def _where(table: str | None) -> str:
    return "any table" if table is None else f"the table {shortened(table)}"


def shortened(name: str) -> str:
    """Quoted, and cut where it is longer than any name that there can be."""
    return repr(name if len(name) <= 128 else f"{name[:128]}…")
