"""``python -m support.compose_client CA TOKEN PORT=ADDRESS…``: a client on the machine of a compose file.

Ports that the file publishes are passed on, as Docker does. Prints what Prometheus and the cluster say, as JSON.
"""

import asyncio
import contextlib
import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow as pa

import headgate
from support.waiting import wait_until

_LIMIT_S = 300.0


async def main(ca: str, token: str, *published: str) -> None:
    async with contextlib.AsyncExitStack() as servers:
        for each in published:
            port, _, address = each.partition("=")
            await servers.enter_async_context(await asyncio.start_server(_passed_on(address), "127.0.0.1", int(port)))
        written = await asyncio.to_thread(_write, Path(token).read_text().strip(), ca)
        seen = await asyncio.to_thread(_watched)
    print(json.dumps({"written": written, **seen}))


def _passed_on(address: str) -> Any:
    host, _, port = address.rpartition(":")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(host, int(port))
        await asyncio.gather(_pump(reader, there[1]), _pump(there[0], writer))

    return connected


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, asyncio.CancelledError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


def _write(token: str, ca: str) -> int:
    with headgate.connect("localhost:7070", token=token, tls=headgate.Tls(ca=ca), timeout=_LIMIT_S, wait=_LIMIT_S) as hg:
        table = hg.create_table("t", pa.schema([("id", pa.int64())]), key="id")
        channels = [table.channel(f"c{number}") for number in range(4)]  # more than writers
        for number, channel in enumerate(channels):
            channel.upsert([{"id": row} for row in range(number * 100, number * 100 + 100)])
        for channel in channels:
            channel.flush("queryable")
            channel.close()
    return len(channels) * 100


def _watched() -> dict[str, Any]:
    """Once Prometheus has read every service."""
    targets: dict[str, str] = {}

    def all_up() -> bool:
        targets.update({each["labels"]["instance"]: each["health"] for each in _asked("targets")["activeTargets"]})
        return {*targets.values()} == {"up"}

    wait_until(lambda: f"Prometheus reads all of {targets}", all_up, _LIMIT_S, not_yet=OSError)
    return {"targets": targets, "rules": len(_asked("rules")["groups"])}


def _asked(what: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:9091/api/v1/{what}", timeout=_LIMIT_S) as answer:
        return json.load(answer)["data"]


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
