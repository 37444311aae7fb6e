"""Writes two tables through a real cluster and says what they must hold: `python -m support.cluster_tables FOLDER`.

A process of its own, because the interop suite's environment has Spark and not the cluster. For each table T there is
FOLDER/T.parquet with the rows that must be there, by a dictionary that shares no code with the cluster.
"""

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import headgate
import headgate.aio
from headgate.maintenance import Maintenance
from support.cluster import Cluster
from support.oracle import Oracle, Row
from support.processes import READY_S

EVENT_TIME, COMMIT_TIME = "by_event_time", "by_commit_time"
_COLUMNS: dict[str, pa.DataType] = {
    "id": pa.string(),
    "part": pa.string(),
    "ts": pa.timestamp("us", tz="UTC"),
    "amount": pa.decimal128(18, 4),
    "tags": pa.list_(pa.string()),
    "note": pa.string(),
}
SCHEMA = pa.schema(_COLUMNS)
_START = datetime(2026, 2, 28, 12, 0, 0, 123_456, UTC)


def _row(number: int, second: int, note: str) -> Row:
    stamp = _START + timedelta(seconds=second)
    tags = ["", "ä"] if number % 3 else []
    return {"id": f"k{number}", "part": "abc"[number % 3], "ts": stamp, "amount": number, "tags": tags, "note": note}


def _steps(ordered: bool) -> list[tuple[str, list[Row]]]:
    """Upserts and deletes, updates of both, late ones where an ordering column says what is late, and a key that comes back."""
    late = [("upsert", [_row(n, 1, "late") for n in range(0, 60, 3)]), ("delete", [_row(n, 0, "late") for n in range(30, 40)])]
    return [
        ("upsert", [_row(n, 10, "first") for n in range(120)]),
        ("upsert", [_row(n, 20, "second") for n in range(40, 160)]),
        ("delete", [_row(n, 30, "") for n in range(0, 160, 7)]),
        *(late if ordered else []),
        ("upsert", [_row(n, 40, "again") for n in range(0, 160, 14)]),
        ("upsert", [_row(n, 50 + n, "last") for n in (1, 1, 2, 2, 3)]),
    ]


async def _plan_nothing(address: str, table: str) -> None:
    """The oracle remembers deletes for good; a plan of the cluster's own, left to Spark, would forget some of them (rule DE2)."""
    often = ("hoodie.compact.inline.max.delta.commits", "headgate.compaction.first.delta.commits")
    async with headgate.aio.connect(address, timeout=READY_S, wait=READY_S) as hg:
        await Maintenance(hg, table).configure(dict.fromkeys(often, "1000"))


def _write(hg: headgate.Headgate, cluster: Cluster, name: str, ordering: str | None) -> list[Row]:
    """Each step is a checkpoint of its own; in the middle a writer is killed and another takes its place."""
    oracle = Oracle(key=["id"], partition=["part"], ordering=ordering)
    table = hg.create_table(name, SCHEMA, key="id", partition_by="part", ordering=ordering, buckets=2)
    asyncio.run(_plan_nothing(cluster.address, name))
    with table.channel("steps") as channel:
        for number, (operation, rows) in enumerate(_steps(ordering is not None)):
            getattr(channel, operation)(rows)
            getattr(oracle, operation)(rows)
            if number == 2:
                cluster.restart("writer-1")
            channel.flush("queryable")
    return oracle.rows()


def main(folder: Path) -> None:
    """Both tables lie in ``folder/cluster/store``."""
    tables: list[tuple[str, Any]] = [(EVENT_TIME, "ts"), (COMMIT_TIME, None)]
    with Cluster(folder / "cluster", writers=2) as cluster, headgate.connect(cluster.address) as hg:
        for name, ordering in tables:
            rows = _write(hg, cluster, name, ordering)
            pq.write_table(pa.Table.from_pylist(rows, SCHEMA), folder / f"{name}.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
