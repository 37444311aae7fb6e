"""The service of test_lifecycle.py: its first argument says what it does."""

import asyncio
import json
import logging
import os
import sys

from headgate_runtime import lifecycle, logs
from headgate_runtime.environment import ENVIRONMENT
from headgate_runtime.settings import ServiceSettings, load_settings

what = sys.argv[1]
settings = load_settings(ServiceSettings, sys.argv[2:], prog="service", about="For tests.")
logs.configure(settings)


async def main(drain: asyncio.Event) -> None:
    if what == "fails":
        async with asyncio.TaskGroup() as group:
            group.create_task(_fail())
    if what == "environment":
        print(json.dumps({"environment": {name: os.environ[name] for name in ENVIRONMENT}, "pid": os.getpid()}))
    if what == "arrays":
        import pyarrow as pa

        assert pa.array([1, None, 3]).sum() == pa.scalar(4)
        print(json.dumps({"pandas": "pandas" in sys.modules}))
    if what == "logs":
        logs.get_logger().info("opened", channel="a\nb\x1b[2J")
        logging.getLogger("library").warning("from a library\x1b[2J")
    if what == "server":
        from headgate_runtime.grpc_server import Server

        Server(settings)
    if what == "frees":
        await _use_and_free(200)
    if what in ("drains", "hangs", "frees"):
        lifecycle.announce_ready("127.0.0.1:70")
        await drain.wait()
        print("draining" if what == "hangs" else "drained", flush=True)
    if what == "hangs":
        await asyncio.Event().wait()


async def _use_and_free(mebibytes: int) -> None:
    used = [bytes([1]) * (1 << 20) for _ in range(mebibytes)]
    kept = [bytes(100) for _ in used]
    used.clear()
    assert kept


async def _fail() -> None:
    token = "hunter2".upper()
    assert token
    raise OSError("no disk")


sys.exit(lifecycle.run_service(main))
