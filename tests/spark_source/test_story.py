"""docs/spark.md, cell by cell, as it stands but for addresses, and what the table then holds by the CSV alone."""

from __future__ import annotations

import csv
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from headgate_tables import hudi
from support.dev_cluster import dev_cluster
from support.pages import blocks
from support.readers import read_by_hudi_rs

PAGE = "docs/spark.md"
AIRPORTS, CARRIERS = ("EWR", "JFK", "LGA"), ("AA", "B6", "UA", "DL")
DESTINATIONS = ("ATL", "BOS", "LAX", "MIA", "ORD", "SFO", "SJU")
DEV = "headgate dev --store lake"
FLIGHTS = 4_000


def flight(number: int) -> dict[str, str]:
    """Each of 13 is cancelled."""
    time = f"{5 + number % 19}{number % 60:02}"
    gone = number % 13 == 0
    return {
        "year": "2013",
        "month": str(1 + number % 12),
        "day": str(1 + number % 28),
        "dep_time": "NA" if gone else time,
        "sched_dep_time": time,
        "dep_delay": "NA" if gone else str(number % 91 - 10),
        "carrier": CARRIERS[number % 4],
        "flight": str(number),
        "origin": AIRPORTS[number % 3],
        "dest": DESTINATIONS[number % 7],
        "time_hour": f"2013-{1 + number % 12:02}-{1 + number % 28:02}T{5 + number % 19:02}:00:00Z",
    }


def wanted() -> dict[str, tuple[str, str, int]]:
    """Origin, destination and delay of each flight that departed, by id."""
    named = ("year", "month", "day", "carrier", "flight", "origin", "sched_dep_time")
    departed = [each for each in map(flight, range(FLIGHTS)) if each["dep_time"] != "NA"]
    return {"-".join(each[name] for name in named): (each["origin"], each["dest"], int(each["dep_delay"])) for each in departed}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "flights.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(flight(0)))
        writer.writeheader()
        writer.writerows(map(flight, range(FLIGHTS)))
    return path


def test_each_cell_of_the_page_does_what_it_says(
    spark: Any, state_home: Path, tmp_path: Path, source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    del spark, state_home
    cells = [(block.language, block.text) for block in blocks(PAGE)]
    assert [language for language, _ in cells] == ["python", "sh", "sh", "python", "sh", "python"]
    (_, load), (_, dev), (_, adopt), (_, stream), (_, sort), (_, read) = cells
    assert dev.strip() == DEV
    lake = tmp_path / "store"
    names: dict[str, Any] = {}

    def run(code: str, address: str = "") -> None:
        here = code.replace('"flights.csv"', repr(str(source))).replace('"lake/flights"', repr(str(lake / "flights")))
        exec(here.replace('"localhost:7070"', repr(address)), names)

    run(load)
    assert read_by_hudi_rs(lake / "flights").num_rows == FLIGHTS
    with dev_cluster(tmp_path, compactors=1) as (address, _):
        headgate(adopt, address)
        run(stream, address)
        headgate(sort, address)
        capfd.readouterr()
        run(read, address)
        shown = capfd.readouterr().out
    rows = read_by_hudi_rs(lake / "flights").select(["id", "origin", "dest", "dep_delay"]).to_pylist()
    expected = wanted()
    assert {each["id"]: (each["origin"], each["dest"], each["dep_delay"]) for each in rows} == expected
    assert len(rows) == len(expected)
    of_route = [delay for origin, dest, delay in expected.values() if (origin, dest) == ("JFK", "LAX")]
    [shown_row] = re.findall(r"^\|\s*(\d+)\|", shown, re.MULTILINE)
    assert int(shown_row) == len(of_route)
    assert is_sorted(lake / "flights")


def headgate(commands: str, address: str) -> None:
    for line in commands.splitlines():
        program, *arguments = line.split()
        assert program == "headgate"
        command = [os.environ["HEADGATE_CLUSTER_PYTHON"], "-m", "headgate_cli", *arguments, "--connect", address]
        subprocess.run(command, check=True)


def is_sorted(folder: Path) -> bool:
    with hudi.open_table(str(folder)) as table:
        [base] = [group.slices()[-1].base for group in table.file_groups()]
    rows = pq.read_table(folder / base, columns=["origin", "dest"]).to_pylist()
    order = [(each["origin"], each["dest"]) for each in rows]
    return len(order) > 1 and order == sorted(order)
