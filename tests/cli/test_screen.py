"""`status --watch` fits the screen: nothing scrolls away, and what was cut off is said."""

import io
import os

from headgate_cli.screen import Screen, fit


def test_what_fits_stays_as_it_is() -> None:
    assert fit(["abc", "", "de"], 3, 3) == ["abc", "", "de"]
    assert fit([], 3, 3) == []


def test_a_line_that_is_too_wide_ends_with_a_mark_and_wide_characters_count_twice() -> None:
    assert fit(["abcd", "表表", "a表表"], 4, 3) == ["abcd", "表表", "a表…"]


def test_the_last_line_says_how_many_are_left_out() -> None:
    lines = [str(number) for number in range(10)]
    assert fit(lines, 80, 4) == ["0", "1", "2", "… 7 more lines: a taller window shows them"]
    assert len(fit(lines, 8, 1)[0]) == 8


def test_each_text_replaces_the_one_before_from_the_first_line_on_and_the_cursor_comes_back() -> None:
    out = io.StringIO()
    with Screen(out) as screen:
        screen.show(["long line", "b", "c", "d"], os.terminal_size((20, 4)))
        screen.show(["x"], os.terminal_size((20, 4)))
    begun, first, second = out.getvalue().split("\x1b[H")[1:]
    assert begun == "\x1b[J"
    assert first == "long line\x1b[K\nb\x1b[K\n… 2 more lines: a ta\x1b[K\n\x1b[J", "the fourth line stays empty: else it scrolls"
    assert second == "x\x1b[K\n\x1b[J\x1b[?25h"
