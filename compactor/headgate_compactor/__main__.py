"""``python -m headgate_compactor --coordinator HOST:PORT``: one compactor of a cluster."""

import asyncio
import sys

from headgate_compactor.settings import CompactorSettings
from headgate_runtime import logs
from headgate_runtime.lifecycle import importing, run_service
from headgate_runtime.settings import load_settings
from headgate_runtime.world import World

_ABOUT = "Merges file slices into base files: takes operations of compaction plans from the cluster's coordinators."


def main() -> int:
    """Returns the exit code: 0 drained, 1 failed, 2 a setting is wrong."""
    settings = load_settings(CompactorSettings, sys.argv[1:], prog="headgate-compactor", about=_ABOUT)
    logs.configure(settings)

    async def run(drain: asyncio.Event) -> None:
        # Imported here and not above: the process replaces itself once before it comes here, and would load Arrow twice.
        with importing():
            from headgate_compactor.process import serve

        await serve(settings, drain, World.real())

    return run_service(run)


if __name__ == "__main__":
    sys.exit(main())
