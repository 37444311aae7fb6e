"""Tables on a terminal: as many columns as fit, which do not, and nothing that moves the cursor."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from headgate_cli.columns import fitting_widths, left_out_note, natural_widths
from headgate_cli.output import Output
from support.access import write_access

ROWS = [{"id": number, "name": "表" * 30, "price": 1.5, "note": "word " * 20, "day": "2026-01-01"} for number in (7, 1806)]


@pytest.mark.parametrize(
    ("naturals", "width", "shown"),
    [
        ([3, 4, 5], 16, [3, 4, 5]),
        ([3, 4, 5], 15, [3, 4]),
        ([3, 100, 5], 60, [3, 48, 5]),
        ([3, 100, 5], 30, [3, 25]),
        ([100, 5], 40, [33, 5]),
        ([100, 5], 30, [30]),
        ([100], 10, [10]),
    ],
)
def test_columns_are_taken_from_the_left_and_long_ones_share_what_is_left(
    naturals: list[int], width: int, shown: list[int]
) -> None:
    assert fitting_widths(naturals, width) == shown
    assert sum(shown) + 2 * (len(shown) - 1) <= width


def test_characters_of_two_cells_count_twice() -> None:
    assert natural_widths(["a", "表表"], [["abc", "x"], ["表表", ""]]) == [4, 4]
    assert natural_widths(["表", "b"], []) == [2, 1]


@pytest.mark.parametrize("width", [10, 30, 44, 60, 80, 120, 200])
def test_no_line_of_a_table_is_wider_than_the_terminal(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=False, width=width).print_records(ROWS, data=True, instead="See --vertical.")
    header, *rows = capsys.readouterr().out.splitlines()
    table = [header, *rows[:2]]
    assert max(map(cell_len, table)) <= width
    left_out = [name for name in ROWS[0] if name not in header.split()]
    note = " ".join(rows[2:])
    if left_out:
        assert note.startswith(f"{len(left_out)} of 5 columns are not shown: {left_out[0]}"[: 29 + width])
        assert note.endswith("See --vertical.")
    else:
        assert not note
        assert width >= 80
    assert rows[1].split()[0] == "1806", "digits of data are not grouped"


def test_long_texts_of_data_are_cut_with_a_mark_and_others_are_folded(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=False, width=30).print_records(ROWS[:1], data=True)
    assert "表…" in capsys.readouterr().out.splitlines()[1].replace(" ", "")
    Output(json=False, width=30).print_records([{"id": 1, "why": "x" * 60}])
    said = capsys.readouterr().out
    assert "…" not in said
    assert said.count("x") == 60


def test_a_pipe_gets_every_column_whole(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=False).print_records(ROWS, data=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all("表" * 30 in line and ("word " * 20).strip() in line and "2026-01-01" in line for line in lines[1:])


def test_control_characters_of_values_are_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"id": 1, "text": "a\x1b[2Jb\nc\td\x9be\u2028f"}
    shown = r"a\x1b[2Jb\nc\td\x9be\u2028f"
    Output(json=False).print_records([row], data=True)
    assert capsys.readouterr().out.splitlines()[1].split() == ["1", shown]
    Output(json=False).print_record(row, data=True)
    assert capsys.readouterr().out.splitlines()[1].split() == ["text", shown]


def test_a_note_about_many_columns_stays_short() -> None:
    names = [f"measure_{number:03}" for number in range(500)]
    note = left_out_note(names, 4, "See --vertical.", 100)
    assert note.startswith("496 of 500 columns are not shown: measure_004, ")
    assert len(note) < 180
    assert left_out_note(names, 500, "See --vertical.", 100) == ""


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["access", "list", "--access"], ["access", "list", "--json", "--access"]], ids=" ".join)
def test_a_reader_that_has_enough_of_a_table_is_no_error(arguments: list[str], tmp_path: Path) -> None:
    file = write_access(tmp_path / "access.toml", {"secret": "ann"})
    command = [sys.executable, "-m", "headgate_cli", *arguments, str(file)]
    read, write = os.pipe()
    os.close(read)
    try:
        ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write)
    assert (ended.returncode, ended.stderr) == (0, "")
