"""``python -m headgate_writer --coordinator HOST:PORT``: one writer of a cluster."""

import asyncio
import gc
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

from headgate_runtime import logs
from headgate_runtime.lifecycle import run_service
from headgate_runtime.settings import load_settings
from headgate_runtime.world import World
from headgate_writer.process import serve
from headgate_writer.settings import WriterSettings

_ABOUT = "Takes rows from clients, exchanges them with the other writers by key group, and writes them to files."

_SWITCH_S = 0.0005
"""How long a thread waits for the interpreter's lock before it asks for it. Kernels give it away at each call, and with Python's
own 5 ms a turn of many calls stands still most of the time while the loop is busy. The price: some hundred switches a second."""

_GC = (20_000, 20, 50)
"""Messages make hundreds of objects and no cycles; Python's own (700, 10, 10) spends a fifth of the CPU looking for some."""


class _WithoutPandas(MetaPathFinder):
    """Where pandas is installed, pyarrow imports it with the first scalar that it makes: the event loop would stand still for a
    second, past the coordinators' patience, and 60 MiB would be gone. Nothing here wants it.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if fullname == "pandas":
            raise ModuleNotFoundError("not used in a writer", name=fullname)


def main() -> int:
    """Exit codes: 0 drained, 1 failed, 2 a setting is wrong."""
    settings = load_settings(WriterSettings, sys.argv[1:], prog="headgate-writer", about=_ABOUT)
    logs.configure(settings)
    sys.setswitchinterval(_SWITCH_S)
    sys.meta_path.insert(0, _WithoutPandas())
    gc.set_threshold(*_GC)
    gc.freeze()

    async def run(drain: asyncio.Event) -> None:
        await serve(settings, drain, World.real())

    return run_service(run)


if __name__ == "__main__":
    sys.exit(main())
