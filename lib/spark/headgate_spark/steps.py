"""Which partitions of a source are copied in which commit, and how Spark is asked for their rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pyspark.sql import Column, functions

from headgate_tables.errors import OptionError

Values: TypeAlias = tuple[object, ...]

_MOST: Final = 1_000
"""Partitions of one step: Spark plans a condition that names each."""


@dataclass(frozen=True, slots=True)
class SourcePartition:
    """A partition: its path in the table, its rows in the source, and there the values of the partition columns. Several values
    may lead to one path.
    """

    path: str
    rows: int
    values: Sequence[Values]


def steps_of(parts: Iterable[SourcePartition], step_rows: int) -> list[list[SourcePartition]]:
    """By path; each step has at most ``step_rows`` rows, or is one partition that has more. Raises OptionError."""
    if step_rows < 1:
        raise OptionError(f"step_rows={step_rows}", fix="Use 1 or more.")
    steps: list[list[SourcePartition]] = []
    room = 0
    for part in sorted(parts, key=lambda each: each.path):
        if not steps or part.rows > room or len(steps[-1]) == _MOST:
            steps.append([])
            room = step_rows
        steps[-1].append(part)
        room -= part.rows
    return steps


def condition_of(columns: Sequence[str], step: Sequence[SourcePartition]) -> Column:
    """True for rows of the step. Made of comparisons with constants alone, which sources push down to partitions and files."""
    *first, last = (functions.col(f"`{name}`") for name in columns)
    by_first: defaultdict[Values, list[object]] = defaultdict(list)
    for part in step:
        for *outer, inner in part.values:
            by_first[tuple(outer)].append(inner)
    return _any_of([_all_of(first, outer, _is_in(last, inner)) for outer, inner in by_first.items()])


def _is_in(column: Column, values: Sequence[object]) -> Column:
    found = column.isin([value for value in values if value is not None])
    return found | column.isNull() if None in values else found


def _all_of(columns: Sequence[Column], values: Values, also: Column) -> Column:
    for column, value in zip(columns, values, strict=True):
        also = column.eqNullSafe(functions.lit(value)) & also
    return also


def _any_of(conditions: list[Column]) -> Column:
    """As a flat tree: Spark's planner goes down it by recursion."""
    while len(conditions) > 1:
        pairs = zip(conditions[::2], conditions[1::2], strict=False)
        conditions = [one | other for one, other in pairs] + conditions[len(conditions) // 2 * 2 :]
    return conditions[0]
