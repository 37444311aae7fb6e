"""A CSV may have many blocks in a row that give no row: its reader goes on behind them."""

from dataclasses import replace
from pathlib import Path

import pytest

from headgate_cli.reading.bad_rows import BadRows
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import BLOCK_BYTES
from headgate_cli.reading.sources import open_source

RAGGED = "x,y," + "z" * 2000 + "\n"
BLOCKS = 6 * BLOCK_BYTES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "left_out", "tail", "rows"),
    [
        ("a,b\n", RAGGED, "3,4\n", 1),
        ("a,b\n1,2\n", RAGGED, "3,4\n" * 5, 6),
        ("a,b\n1,2\n", RAGGED, "", 1),
        ("a,b\n", "\n", "3,4\n", 1),
        ("a,b\n1,2\n", "\n", "3,4\n", 2),
    ],
    ids=["bad lines first", "bad lines between", "bad lines last", "empty lines first", "empty lines between"],
)
def test_a_file_is_read_past_blocks_without_a_row(head: str, left_out: str, tail: str, rows: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(head + left_out * (BLOCKS // len(left_out)) + tail)
    options = replace(ReadOptions(), delimiter=",", skip_bad=True, max_errors=10**9)
    found = open_source(path, "csv", None, options, BadRows(options))
    assert sum(piece.rows.num_rows for piece in found.pieces(0)) == rows
