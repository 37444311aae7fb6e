"""What a command prints again and again, cut to the terminal."""

import contextlib
import io
import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self, TextIO

from rich.cells import cell_len, set_cell_size

_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_REST_OF_SCREEN: Final = "\x1b[J"
_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


def printed(show: Callable[[], None]) -> list[str]:
    """The lines that ``show`` prints, without colours."""
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


class Screen:
    """The whole terminal, written over and over from its first line: it neither scrolls nor flickers. The last text stays."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, lines: Sequence[str], window: os.terminal_size) -> None:
        """Shows as many of the lines as fit. The last line stays empty: a full screen would scroll."""
        shown = fit(lines, window.columns, window.lines - 1)
        self._out.write(_HOME + "".join(f"{line}{_REST_OF_LINE}\n" for line in shown) + _REST_OF_SCREEN)
        self._out.flush()

    def __enter__(self) -> Self:
        self._out.write(f"{_HIDE_CURSOR}{_HOME}{_REST_OF_SCREEN}")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._out.write(_SHOW_CURSOR)
        self._out.flush()
