"""Partitions that have another number of buckets than the others of their table."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple, TypeAlias


class BucketRule(NamedTuple):
    """``pattern``: paths of partitions, in which each ``*`` stands for any characters but a slash. ``since``: instant of the
    rescale that made the rule, from which the file ids of these partitions begin anew (rule FI6).
    """

    pattern: str
    buckets: int
    since: str


BucketRules: TypeAlias = tuple[tuple[str, int, str], ...]
"""The fields of a ``BucketRule`` each; the first one that matches counts."""


def matches(pattern: str, partition: str) -> bool:
    """Whether a rule of this pattern is about the partition of this path."""
    return _compiled(pattern).fullmatch(partition) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile("[^/]*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
