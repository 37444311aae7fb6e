"""Kill -9 at every file-system call of a script of 20 commits: each returned commit is there once, the one in flight whole or not at all."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from support.crashes import run_and_kill, run_whole

from headgate_tables import hudi
from headgate_tables.commitlog import ownership

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
COMMITS = 20
FOLD_EVERY = 9
EVERY = int(os.environ.get("HEADGATE_CRASH_STEP", "7"))
"""Which calls are tried: every n-th, each test run beginning at another one. 1 tries all of them (some minutes)."""

Rows = dict[str, tuple[str, int, str]]


def batches() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """20 calls: inserts, updates of half the keys, late rows that lose, deletes; over three partitions that appear one by one."""
    for number in range(COMMITS):
        kind = "delete" if number % 5 == 4 else "upsert"
        keys = range(number, number + 6)
        rows = [{"id": f"k{key % 13}", "part": f"p{key % (1 + number // 7)}", "ts": 100 + number - 9 * (key % 4 == 0), "note": f"{number}"} for key in keys]
        yield kind, rows


def after(commits: int) -> Rows:
    """The dictionary model: larger ``ts`` wins, ties go to the later call; deletes hold back older rows."""
    newest: dict[tuple[str, str], tuple[int, str | None]] = {}
    for kind, rows in itertools.islice(batches(), commits):
        for row in rows:
            key = (row["part"], row["id"])
            if key not in newest or newest[key][0] <= row["ts"]:
                newest[key] = (row["ts"], row["note"] if kind == "upsert" else None)
    return {f"{part}/{key}": (part, ts, note) for (part, key), (ts, note) in newest.items() if note is not None}


def read(table: hudi.Table) -> Rows:
    rows = table.scan().to_table().to_pylist()
    found = {f"{row['part']}/{row['id']}": (row["part"], row["ts"], row["note"]) for row in rows}
    assert len(found) == len(rows), "a key is there twice"
    return found


def write(table: hudi.Table, kind: str, rows: list[dict[str, Any]]) -> None:
    data = pa.Table.from_pylist(rows, SCHEMA)
    (table.upsert if kind == "upsert" else table.delete)(data)


def script(url: str) -> Callable[[Callable[[str], None]], None]:
    def run(say: Callable[[str], None]) -> None:
        ownership.FOLD_EVERY = FOLD_EVERY
        table = hudi.create_table(url, SCHEMA, record_key="id", partition_by="part", ordering="ts", buckets=2)
        say("created")
        for kind, rows in batches():
            write(table, kind, rows)
            say("returned")

    return run


def examine(url: str, said: list[str]) -> Callable[[Callable[[str], None]], None]:
    """Reads what is left, writes the rest of the script on top, and reads again."""

    def run(say: Callable[[str], None]) -> None:
        returned = said.count("returned")
        if "created" not in said:
            table = hudi.create_table(url, SCHEMA, record_key="id", partition_by="part", ordering="ts", buckets=2, exist_ok=True)
        table = hudi.open_table(url)
        first = read(table)
        assert first in (after(returned), after(returned + 1)), f"after {returned} returned commits: {first}"
        with table.transaction():
            pass  # fences, and so rolls forward what was won
        there = len(hudi.open_table(url).commits())
        assert there in (returned, returned + 1), f"{there} commits, {returned} were returned"
        assert read(table) == after(there)
        for kind, rows in itertools.islice(batches(), there, None):
            write(table, kind, rows)
        assert read(table) == after(COMMITS)
        assert len(table.commits()) == COMMITS
        verification = hudi.open_table(url).verify()
        assert verification.ok, verification.findings
        say("fine")

    return run


def calls_of_the_script(tmp_path: Path) -> int:
    """How many calls there are: the least k at which the script is not killed any more, by bisection."""
    alive, killed = 1 << 16, 1
    while alive - killed > 1:
        middle = (alive + killed) // 2
        run = run_and_kill(script(f"file://{tmp_path}/count-{middle}"), middle)
        alive, killed = (alive, middle) if run.killed else (middle, killed)
    return killed


def test_kill_at_every_file_system_call_loses_and_doubles_nothing(tmp_path: Path) -> None:
    total = calls_of_the_script(tmp_path)
    assert total > COMMITS * 10
    for at in range(1 + total % EVERY, total + 1, EVERY):
        url = f"file://{tmp_path}/table-{at}"
        run = run_and_kill(script(url), at)
        assert run.killed, f"call {at} of {total} was never made"
        assert run_whole(examine(url, run.said)) == ["fine"], f"killed before call {at} of {total}"


def test_the_script_itself_ends_as_the_model_says(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/table"
    said = run_whole(script(url))
    assert said == ["created", *["returned"] * COMMITS]
    assert run_whole(examine(url, said)) == ["fine"]

