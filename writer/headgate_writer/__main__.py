"""``python -m headgate_writer --coordinator HOST:PORT``: one writer of a cluster."""

import asyncio
import gc
import sys

from headgate_runtime import logs
from headgate_runtime.lifecycle import importing, run_service, share_interpreter
from headgate_runtime.settings import load_settings
from headgate_runtime.world import World
from headgate_writer.settings import WriterSettings

_ABOUT = "Takes rows from clients, exchanges them with the other writers by key group, and writes them to files."

_GC = (20_000, 20, 50)
"""Messages make hundreds of objects and no cycles; with Python's default (700, 10, 10), looking for cycles takes a fifth of the
CPU."""


def main() -> int:
    """Returns the exit code: 0 drained, 1 failed, 2 a setting is wrong."""
    settings = load_settings(WriterSettings, sys.argv[1:], prog="headgate-writer", about=_ABOUT)
    logs.configure(settings)
    share_interpreter()
    gc.set_threshold(*_GC)

    async def run(drain: asyncio.Event) -> None:
        # Imported here and not above: the process replaces itself once before it comes here, and would load Arrow twice.
        with importing():
            from headgate_writer.process import serve

        await serve(settings, drain, World.real())

    return run_service(run)


if __name__ == "__main__":
    sys.exit(main())
