"""`status --watch` fits the screen: nothing scrolls away, and what was cut off is said."""

import click

from headgate_cli.output import Output
from headgate_cli.screen import fit, printed
from headgate_cli.status import _refresh


def test_what_fits_stays_as_it_is() -> None:
    assert fit(["abc", "", "de"], 3, 3) == ["abc", "", "de"]
    assert fit([], 3, 3) == []


def test_a_line_that_is_too_wide_ends_with_a_mark_and_wide_characters_count_twice() -> None:
    assert fit(["abcd", "表表", "a表表"], 4, 3) == ["abcd", "表表", "a表…"]


def test_the_last_line_says_how_many_are_left_out() -> None:
    lines = [str(number) for number in range(10)]
    assert fit(lines, 80, 4) == ["0", "1", "2", "… 7 more lines: a taller window shows them"]
    assert len(fit(lines, 8, 1)[0]) == 8


def test_alarms_come_first_and_tables_are_as_wide_as_their_values() -> None:
    found = {
        "redis_reachable": True,
        "coordinators": [{"name": "c" * 120, "address": "here"}],
        "writers": [],
        "compactors": [],
        "tables": [],
        "alarms": ["coordinator-1: the store cannot be listed"],
    }
    lines = printed(lambda: _refresh(Output(json=False), found))
    assert lines[0] == "coordinator-1: the store cannot be listed"
    assert f"{'c' * 120}  here" in lines
    assert "no tables" in lines
    click.echo()  # stdout is what it was
