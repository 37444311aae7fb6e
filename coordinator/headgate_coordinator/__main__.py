"""``python -m headgate_coordinator``: one coordinator."""

import asyncio
import sys

from headgate_coordinator.settings import CoordinatorSettings
from headgate_runtime.lifecycle import announce_ready, importing, run_service, share_interpreter
from headgate_runtime.logs import configure
from headgate_runtime.settings import load_settings
from headgate_runtime.world import World


def main() -> int:
    """Exit codes: 0 after a drain, 1 after an error, 2 for settings that are wrong."""
    settings = load_settings(
        CoordinatorSettings,
        sys.argv[1:],
        prog="headgate-coordinator",
        about="Owns tables: runs their checkpoints and commits them.",
    )
    configure(settings)
    share_interpreter()

    async def run(draining: asyncio.Event) -> None:
        # Here and not above: the process replaces itself once before it comes here, and would load Arrow twice.
        with importing():
            from headgate_coordinator.service import serve

        await serve(settings, World.real(), draining, announce_ready)

    return run_service(run)


if __name__ == "__main__":
    sys.exit(main())
