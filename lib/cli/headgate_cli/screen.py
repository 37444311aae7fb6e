"""What a command prints again and again, cut to the terminal."""

import contextlib
import io
from collections.abc import Callable, Sequence

from rich.cells import cell_len, set_cell_size


def printed(show: Callable[[], None]) -> list[str]:
    """The lines that ``show`` prints, as for a pipe: tables are as wide as their values."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        show()
    return [line.rstrip() for line in text.getvalue().splitlines()]


def fit(lines: Sequence[str], width: int, height: int) -> list[str]:
    """At most ``height`` lines of at most ``width`` cells. "…" ends a line that was cut; the last one counts those left out."""
    shown = [line if cell_len(line) <= width else f"{set_cell_size(line, width - 1)}…" for line in lines]
    if len(shown) <= height:
        return shown
    left_out = len(shown) - height + 1
    return [*shown[: height - 1], set_cell_size(f"… {left_out} more lines: a taller window shows them", width).rstrip()]
