"""Follows a file of JSON lines ({"id", "at", "level", "text"}) and sends each line once. Killed at any moment, it goes on there.

Beside a running `headgate dev`:  python examples/asyncio_producer.py FILE
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO

import headgate

COLUMNS = [("id", str), ("at", datetime), ("level", str), ("text", str)]
LINES = 1_000


def read(file: IO[bytes]) -> Iterator[tuple[list[dict[str, object]], int]]:
    """Rows from here to the end, and the file's position behind them. A last line without its end is left for later."""
    rows, position = [], file.tell()
    for line in file:
        if not line.endswith(b"\n"):
            break
        position += len(line)
        row = json.loads(line)
        rows.append({**row, "at": datetime.fromisoformat(row["at"])})
        if len(rows) == LINES:
            yield rows, position
            rows = []
    if rows:
        yield rows, position


async def follow(logs: headgate.aio.Table, path: Path) -> None:
    """Returns never. Raises HeadgateError."""
    async with logs.channel(f"follow/{path.name}") as channel:
        with path.open("rb") as file:
            file.seek(channel.committed_offset)  # an offset is a position in the file
            while True:
                for rows, position in read(file):
                    await channel.upsert(rows, offset=position)  # waits while the buffer is full
                file.seek(channel.offset)
                await asyncio.sleep(1)


async def main() -> None:
    async with headgate.aio.connect(os.environ.get("HEADGATE_CONNECT", "localhost:7070"), wait=60) as hg:
        logs = await hg.create_table("logs", COLUMNS, key="id", ordering="at", exist_ok=True)
        while True:
            try:
                await follow(logs, Path(sys.argv[1]))
            except headgate.Resume as error:  # an operator restored the table: open again, send from the older offset
                print(error, file=sys.stderr)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except headgate.HeadgateError as error:
        sys.exit(f"{error}")
