"""The service of test_harness.py: reaches "late" and "early" each time it gets a byte on its port, and answers with its name."""

import asyncio
import sys

from headgate_runtime.lifecycle import announce_ready, run_service
from headgate_runtime.world import World


async def main(drain: asyncio.Event) -> None:
    world = World.real()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1):
            world.reached("early")
            world.reached("late")
            writer.write(b"+" + sys.argv[-1].encode() + b"\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        announce_ready(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await drain.wait()
        server.close()


if __name__ == "__main__":
    sys.exit(run_service(main))
