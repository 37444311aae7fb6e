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
from headgate_writer.settings import WriterSettings

_ABOUT = "Takes rows from clients, exchanges them with the other writers by key group, and writes them to files."

_SWITCH_S = 0.0005
"""How long a thread waits for the interpreter's lock before it asks for it. Kernels release the lock at each call, so with
Python's default of 5 ms a turn of many calls mostly waits while the loop is busy. The price: some hundred switches a second."""

_GC = (20_000, 20, 50)
"""Messages make hundreds of objects and no cycles; with Python's default (700, 10, 10), looking for cycles takes a fifth of the
CPU."""


class _WithoutPandas(MetaPathFinder):
    """Keeps pyarrow from importing pandas, which writers do not use. Where pandas is installed, pyarrow imports it with the first
    scalar: the event loop would stand still for a second, longer than coordinators wait, and 60 MiB would be taken.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if fullname == "pandas":
            raise ModuleNotFoundError("not used in a writer", name=fullname)


def main() -> int:
    """Returns the exit code: 0 drained, 1 failed, 2 a setting is wrong."""
    settings = load_settings(WriterSettings, sys.argv[1:], prog="headgate-writer", about=_ABOUT)
    logs.configure(settings)
    sys.setswitchinterval(_SWITCH_S)
    sys.meta_path.insert(0, _WithoutPandas())
    gc.set_threshold(*_GC)

    async def run(drain: asyncio.Event) -> None:
        # Imported here and not above: the process replaces itself once before it comes here, and would load Arrow twice.
        from headgate_writer.process import serve

        gc.freeze()  # the objects of libraries live as long as the process; cycles are not looked for in them
        await serve(settings, drain, World.real())

    return run_service(run)


if __name__ == "__main__":
    sys.exit(main())
