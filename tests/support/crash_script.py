"""A script of commits for crash tests, what it must leave by a dictionary, and how to look at what it left.

``python -m support.crash_script URL`` runs it in a process of its own, which stops itself before it begins (SIGSTOP), and prints
a line when a step is done.
"""

import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from headgate_tables import hudi
from headgate_tables.commitlog import commit_log
from headgate_tables.commitlog.records import ChannelRecord

_COLUMNS: dict[str, pa.DataType] = {"id": pa.string(), "part": pa.string(), "ts": pa.int64(), "note": pa.string()}
SCHEMA = pa.schema(_COLUMNS)
COMMITS = 20
FOLD_EVERY = 9
ROLLED_BACK, TAKEN_OVER, OFFSETS = (4, 13), (8, 13, 17), (6, 13, 16)
"""Before these commits a transaction is rolled back; another handle takes the table over; offsets alone are committed."""

Rows = dict[str, tuple[str, int, str]]


def batches() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """20 calls: inserts, updates of half the keys, late rows that lose, deletes; over three partitions that appear one by one."""
    for number in range(COMMITS):
        kind = "delete" if number % 5 == 4 else "upsert"
        rows = [
            {
                "id": f"k{key % 13}",
                "part": f"p{key % (1 + number // 7)}",
                "ts": 100 + number - 9 * (key % 4 == 0),
                "note": str(number),
            }
            for key in range(number, number + 6)
        ]
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


def run(url: str, say: Callable[[str], None]) -> None:
    """Says "created" once and "returned" after each commit."""
    commit_log.FOLD_EVERY = FOLD_EVERY
    table = _create(url)
    say("created")
    for number, (kind, rows) in enumerate(batches()):
        if number in TAKEN_OVER:
            table = hudi.open_table(url)
        if number in ROLLED_BACK:
            given_up = table.transaction()
            given_up.upsert(pa.Table.from_pylist([{"id": "k1", "part": "p0", "ts": 999, "note": "given up"}], SCHEMA))
            given_up.rollback()
        if number in OFFSETS:
            table.win_offsets({"loader": ChannelRecord(1, number, "me", 0)})
        _write(table, kind, rows)
        say("returned")


def examine(url: str, said: Sequence[str], *, read_first: bool = True) -> None:
    """Reads what is left, writes the rest of the script on top, reads again. Raises AssertionError for a lost or doubled commit.

    After a power cut the next writer has to put unsynced names in place before all can be read: ``read_first=False``.
    """
    commit_log.FOLD_EVERY = FOLD_EVERY
    returned = list(said).count("returned")
    if "created" not in said:
        _create(url, exist_ok=True)
    table = hudi.open_table(url)
    offset = table.channels.get("loader", [1, 0])[1]
    assert offset in {max((n for n in OFFSETS if n < returned + more), default=0) for more in (0, 1)}, f"offset {offset}"
    if read_first:
        found = _read(table)
        assert found in (after(returned), after(returned + 1)), f"after {returned} returned commits: {found}"
    with table.transaction():
        pass  # fences, and so rolls forward what was won
    there = len(table.commits())
    assert there in (returned, returned + 1), f"{there} commits, {returned} were returned"
    assert _read(table) == after(there)
    for kind, rows in itertools.islice(batches(), there, None):
        _write(table, kind, rows)
    assert len(table.commits()) == COMMITS
    fresh = hudi.open_table(url)
    assert _read(fresh) == after(COMMITS)
    verification = fresh.verify()
    assert verification.ok, verification.findings


def _create(url: str, *, exist_ok: bool = False) -> hudi.Table:
    return hudi.create_table(url, SCHEMA, record_key="id", partition_by="part", ordering="ts", buckets=2, exist_ok=exist_ok)


def _write(table: hudi.Table, kind: str, rows: list[dict[str, Any]]) -> None:
    data = pa.Table.from_pylist(rows, SCHEMA)
    (table.upsert if kind == "upsert" else table.delete)(data)


def _read(table: hudi.Table) -> Rows:
    rows = table.scan().to_table().to_pylist()
    found = {f"{row['part']}/{row['id']}": (row["part"], row["ts"], row["note"]) for row in rows}
    assert len(found) == len(rows), "a key is there twice"
    return found


if __name__ == "__main__":
    os.kill(os.getpid(), signal.SIGSTOP)
    run(sys.argv[1], lambda line: print(line, flush=True))
