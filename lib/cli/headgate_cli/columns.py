"""Which columns of a table fit a terminal, and how wide each is."""

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len

GAP: Final = 2
"""Cells between two columns."""
_LEAST: Final = 24
"""Cells that a column gets if its values are longer; a shorter column is never made narrower."""


def natural_widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """The widths of columns in cells of a terminal, in which some characters take two."""
    return [
        max(cell_len(name), *(cell_len(row[position]) for row in rows)) if rows else cell_len(name)
        for position, name in enumerate(columns)
    ]


def fitting_widths(naturals: Sequence[int], width: int) -> list[int]:
    """The widths of as many columns as fit, from the left; at least one. Long columns share what is left over."""
    shown: list[int] = []
    for natural in naturals:
        least = min(natural, _LEAST)
        if shown and sum(shown) + GAP * len(shown) + least > width:
            break
        shown.append(min(least, width))
    spare = width - sum(shown) - GAP * (len(shown) - 1)
    for position, natural in enumerate(naturals[: len(shown)]):
        more = min(natural - shown[position], spare)
        shown[position] += more
        spare -= more
    return shown


def left_out_note(columns: Sequence[str], shown: int, instead: str, width: int) -> str:
    """Says which columns are not shown, cut to some lines of a terminal, and with what to see them; "" if all are."""
    left_out = columns[shown:]
    if not left_out:
        return ""
    names = ", ".join(left_out)
    if cell_len(names) > width:
        names = f"{names[:width]}…"
    return f"{len(left_out)} of {len(columns)} columns are not shown: {names}. {instead}"
