"""Memory of a load does not grow with its file, and a reader stays close to what is taken from it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from headgate_cli.reading.bad_rows import BadRows
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import BLOCK_BYTES
from headgate_cli.reading.sources import open_source
from support.tiers import slow_but

ROWS = 1_000_000
BOUNDS = {"parquet": 96 << 20, "csv": 160 << 20, "orc": 96 << 20}
"""Above a process that has read a small file of the format. The files are twice as large. Texts of a CSV are there twice or more
for a moment: 84 to 118 MB were seen.
"""

READ = """
import sys
from pathlib import Path
import headgate_cli.load.command
from headgate_cli.reading.sources import format_of, open_source
from support.memory import peak_memory, reset_peak_memory
import pyarrow as pa, os
small, large = map(Path, sys.argv[1:])
def read(path):
    types = pa.schema([pa.field("id", pa.int64()), *(pa.field(f"n{at}", pa.int64()) for at in range(23))])
    return sum(piece.rows.num_rows for piece in open_source(path, format_of(path), types).pieces(0))
read(small)
before = reset_peak_memory(os.getpid())
assert read(large) == 1_000_000
print(peak_memory(os.getpid()) - before)
"""


def write_parquet(rows: pa.Table, path: Path) -> None:
    pq.write_table(rows, path, row_group_size=ROWS, use_dictionary=False, compression="none")


def write_orc(rows: pa.Table, path: Path) -> None:
    orc.write_table(rows, str(path), stripe_size=512 << 20)


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "parquet": write_parquet,
    "csv": lambda rows, path: pa_csv.write_csv(rows, path),
    "orc": write_orc,
}


@pytest.mark.parametrize("kind", slow_but({"parquet"}, WRITERS))
def test_memory_stays_below_a_bound_however_large_the_file_and_its_row_groups_are(kind: str, tmp_path: Path) -> None:
    numbers = pa.array(range(10**12, 10**12 + ROWS), pa.int64())
    columns = {"id": numbers} | {f"n{at}": numbers for at in range(23)}
    small, large = tmp_path / f"small.{kind}", tmp_path / f"large.{kind}"
    WRITERS[kind](pa.table(columns).slice(0, 10), small)
    WRITERS[kind](pa.table(columns), large)
    done = subprocess.run([sys.executable, "-c", READ, small, large], capture_output=True, text=True, check=True)
    assert int(done.stdout) < BOUNDS[kind]


LINE = f"1,{'x' * 1000}\n"


def write_lines(path: Path, blocks: int) -> None:
    path.write_text("id,text\n" + LINE * (blocks * BLOCK_BYTES // len(LINE)))


def test_a_csv_is_read_only_a_few_blocks_ahead_of_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    write_lines(path, blocks=12)
    types = pa.schema([pa.field("id", pa.int64()), pa.field("text", pa.string())])
    taken = done = 0
    for piece in open_source(path, "csv", types).pieces(0):
        taken += piece.rows.num_rows * len(LINE)
        assert done <= piece.done <= taken + 2 * len(LINE), "of the file, as far as its rows are, and a part of a line"
        assert taken - piece.done <= BLOCK_BYTES
        done = piece.done
    assert done == path.stat().st_size


def test_blocks_whose_rows_are_all_left_out_do_not_end_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    write_lines(path, blocks=1)
    with path.open("a") as file:
        file.writelines(f"{'y' * 100_000}\n" for _ in range(4 * BLOCK_BYTES // 100_000))
        file.write("2,x\n" * 3_000_000)
    types = pa.schema([pa.field("id", pa.int64()), pa.field("text", pa.string())])
    options = ReadOptions(skip_bad=True)
    bad = BadRows(options)
    rows = sum(piece.rows.num_rows for piece in open_source(path, "csv", types, options, bad).pieces(0))
    assert (rows, len(bad.errors)) == (3_000_000 + BLOCK_BYTES // 1003, 4 * BLOCK_BYTES // 100_000)
