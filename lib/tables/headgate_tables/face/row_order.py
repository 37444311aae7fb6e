"""In which order the rows of a base file lie."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

Curve: TypeAlias = Literal["LINEAR", "ZORDER", "HILBERT"]
"""Hudi's names. LINEAR: by the first column, rows that are equal in it by the second, and so on. Along the others rows that are
near in any of the columns lie near each other.
"""
CURVES: Final[Mapping[str, Curve]] = {each: each for each in get_args(Curve)}


@dataclass(frozen=True, slots=True)
class RowOrder:
    """``columns``: at least one."""

    columns: tuple[str, ...]
    curve: Curve

    def __str__(self) -> str:
        """As the footer of a base file has it."""
        return f"{self.curve}:{','.join(self.columns)}"

    def among(self, names: Collection[str]) -> RowOrder | None:
        """The order by those of its columns that are there: a restore takes away what was added since."""
        there = tuple(each for each in self.columns if each in names)
        return RowOrder(there, self.curve) if there else None
