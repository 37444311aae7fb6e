"""Rows of TPC-H's lineitem by its own generator: 16 columns, four of them decimals, a key of two."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.tables.progress import say
from headgate_tables.arrow import pc

KEY = ("l_orderkey", "l_linenumber")
ORDERING = "l_shipdate"
_MONEY = pa.decimal128(15, 2)
_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("l_orderkey", pa.int64()),
    ("l_partkey", pa.int64()),
    ("l_suppkey", pa.int64()),
    ("l_linenumber", pa.int32()),
    ("l_quantity", _MONEY),
    ("l_extendedprice", _MONEY),
    ("l_discount", _MONEY),
    ("l_tax", _MONEY),
    ("l_returnflag", pa.string()),
    ("l_linestatus", pa.string()),
    ("l_shipdate", pa.date32()),
    ("l_commitdate", pa.date32()),
    ("l_receiptdate", pa.date32()),
    ("l_shipinstruct", pa.string()),
    ("l_shipmode", pa.string()),
    ("l_comment", pa.string()),
]
SCHEMA = pa.schema(_COLUMNS)
_ROWS_OF_SCALE_1 = 5_900_000
"""A little below the 6,001,215 of the specification: smaller scales deviate from their share."""


def lineitem(folder: Path, rows: int) -> str:
    """The first ``rows`` rows as a Parquet file of pyarrow's, made once in a folder."""
    path = folder / f"lineitem-{rows}.parquet"
    if not path.exists():
        say(f"generate {rows:,} rows of lineitem")
        generated = _generate(folder / f"tpch-{rows}", rows)
        left = rows
        with pq.ParquetWriter(path, SCHEMA) as writer:
            for batch in pq.ParquetFile(generated).iter_batches(1 << 20):
                writer.write_table(pa.Table.from_batches([batch[:left]]).cast(SCHEMA))
                left -= min(left, len(batch))
        if left:
            raise AssertionError(f"the generator made {left:,} rows too few")
        generated.unlink()
    return str(path)


def parts_of(source: str, rows: int) -> list[str]:
    """The file's rows in files of ``rows`` beside it, in their order."""
    table = pq.read_table(source)
    paths = [f"{source}-{start}.parquet" for start in range(0, table.num_rows, rows)]
    for number, path in enumerate(paths):
        pq.write_table(table.slice(number * rows, rows), path)
    return paths


def shipped_later(rows: pa.Table) -> pa.Table:
    """The rows as updates that win: shipped a day later, with another quantity."""
    days = pc.cast(pc.add(pc.cast(rows["l_shipdate"], pa.int32()), pa.scalar(1, pa.int32())), pa.date32())
    quantities = pc.cast(pc.add(rows["l_quantity"], pa.scalar(1, _MONEY)), _MONEY)
    moved = rows.set_column(rows.schema.get_field_index("l_shipdate"), "l_shipdate", days)
    return moved.set_column(rows.schema.get_field_index("l_quantity"), "l_quantity", quantities)


def _generate(folder: Path, rows: int) -> Path:
    generator = Path(sys.executable).with_name("tpchgen-cli")
    scale = f"{rows / _ROWS_OF_SCALE_1:.6f}"
    command = [generator, "parquet", "--scale-factor", scale, "--tables", "lineitem", "--output-dir", folder, "--no-progress"]
    subprocess.run([str(word) for word in command], check=True, stdout=sys.stderr)
    return folder / "lineitem.parquet"
