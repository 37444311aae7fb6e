"""Loads a folder of CSV files (id, day, at, price), each through a channel of its own. Run again, it goes on where it stopped.

Beside a running `headgate dev`:  python examples/csv_folder.py FOLDER
"""

import os
import sys
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

import headgate

COLUMNS: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "day": pa.string(),
    "at": pa.timestamp("us", tz="UTC"),
    "price": pa.float64(),
}
SCHEMA = pa.schema(COLUMNS)


def load(orders: headgate.Table, path: Path) -> int:
    """Sends the rows that are not committed yet, and returns how many these were. Raises HeadgateError, pa.ArrowInvalid."""
    sent = position = 0
    options = csv.ConvertOptions(column_types=SCHEMA, include_columns=SCHEMA.names, strings_can_be_null=True)
    with orders.channel(f"csv/{path.name}") as channel, csv.open_csv(path, convert_options=options) as batches:
        done = channel.committed_offset  # rows are counted: this many of the file are in the table, for good
        for batch in batches:
            rest = batch.slice(max(0, done - position))
            position += batch.num_rows
            if rest.num_rows:
                channel.upsert(rest)
                sent += rest.num_rows
    return sent  # leaving the block has waited until all of them can be queried


def main() -> None:
    (folder,) = sys.argv[1:] or ["."]
    with headgate.connect(os.environ.get("HEADGATE_CONNECT", "localhost:7070")) as hg:
        orders = hg.create_table("orders", SCHEMA, key="id", ordering="at", partition_by="day", exist_ok=True)
        for path in sorted(Path(folder).glob("*.csv")):
            print(f"{path.name}: {load(orders, path):,} rows")


if __name__ == "__main__":
    try:
        main()
    except (headgate.HeadgateError, pa.ArrowInvalid) as error:
        sys.exit(f"{error}")  # of ours, the message says what to do next
