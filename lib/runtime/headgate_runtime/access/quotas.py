"""How much a principal may use: quotas of the access file. Pure.

[[quotas]]
groups = ["ingest"]
rows_per_s = 50000
bytes_per_s = 20000000
channels = 100
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

KEYS: Final = ("rows_per_s", "bytes_per_s", "channels")


@dataclass(frozen=True, slots=True)
class Usage:
    """``rows_per_s``, ``bytes_per_s``: at each writer process; bytes of Arrow, before compression. ``channels``: that a table
    remembers, open or not. Infinite: no limit.
    """

    rows_per_s: float = math.inf
    bytes_per_s: float = math.inf
    channels: float = math.inf

    def smaller(self, other: "Usage") -> "Usage":
        """The smaller one of each."""
        return Usage(
            min(self.rows_per_s, other.rows_per_s),
            min(self.bytes_per_s, other.bytes_per_s),
            min(self.channels, other.channels),
        )


UNLIMITED: Final = Usage()


@dataclass(frozen=True, slots=True)
class Quota:
    """For each of these principals, and each one of these groups, by itself. ``line``: where the access file says so."""

    line: int
    usage: Usage
    principals: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def names(self, principal: str, groups: frozenset[str]) -> bool:
        """Whether it holds for a principal in these groups."""
        return principal in self.principals or bool(groups & self.groups)


def usage_of(quotas: Sequence[Quota], principal: str, groups: frozenset[str]) -> Usage:
    """Of several quotas that name it the smallest figures count."""
    found = UNLIMITED
    for quota in quotas:
        if quota.names(principal, groups):
            found = found.smaller(quota.usage)
    return found
