"""How much a principal may use: quotas of the access file. Pure.

[[quotas]]
groups = ["ingest"]
rows_per_s = 50000
bytes_per_s = 20000000
channels = 100
tables = 20

[[quotas]]
principals = ["loader"]
channels = "unlimited"
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

KEYS: Final = ("rows_per_s", "bytes_per_s", "channels", "tables")

NO_LIMIT: Final = "unlimited"
"""Stands in the file for an infinite figure, and lifts a default."""

DEFAULTS: Final[Mapping[str, float]] = {"channels": 1_000}
"""Of a principal for which no quota has the figure. A table keeps each channel's name for 30 days (`channel_retention`), and a
principal without a limit could add hundreds of them a second.
"""


@dataclass(frozen=True, slots=True)
class Usage:
    """``rows_per_s``, ``bytes_per_s``: at each writer process; bytes of Arrow, before compression. ``channels``: that a table
    remembers, open or not. ``tables``: that it made and that are there. Infinite: no limit.
    """

    rows_per_s: float = math.inf
    bytes_per_s: float = math.inf
    channels: float = math.inf
    tables: float = math.inf


UNLIMITED: Final = Usage()


@dataclass(frozen=True, slots=True)
class Quota:
    """For each of these principals, and each one of these groups, by itself. ``line``: where the access file says so.

    ``limits``: those of ``KEYS`` that it has.
    """

    line: int
    limits: Mapping[str, float]
    principals: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def names(self, principal: str, groups: frozenset[str]) -> bool:
        """Whether it holds for a principal in these groups."""
        return principal in self.principals or bool(groups & self.groups)


def usage_of(quotas: Sequence[Quota], principal: str, groups: frozenset[str]) -> Usage:
    """Of several quotas that name it the smallest figures count; where none has a figure, its default."""
    naming = [quota.limits for quota in quotas if quota.names(principal, groups)]
    return Usage(**{key: min((each[key] for each in naming if key in each), default=_default(key)) for key in KEYS})


def _default(key: str) -> float:
    return DEFAULTS.get(key, math.inf)
