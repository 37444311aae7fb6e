"""Requests at full speed that are refused: how long the event loop stands, what another principal notices, what memory stays."""

import asyncio
from functools import partial
from typing import Final

from bench.attacks import noticed
from bench.attacks.attacked import attacked_cluster
from bench.attacks.flood import FLOODS, SECONDS
from bench.tables.child import run_child
from bench.tables.figures import Figures
from bench.tables.scratch import scratch_folder
from support.cluster import Cluster

SECTION: Final = "requests"


def measure(figures: Figures, match: str, rounds: int, *, quick: bool) -> None:
    """Floods whose name contains ``match``, each against a fresh cluster."""
    for name in rounds * [each for each in FLOODS if match in each]:
        with scratch_folder("attacks") as folder, attacked_cluster(folder) as cluster:
            asyncio.run(_measure(figures, name, cluster, SECONDS / (4 if quick else 1)))


async def _measure(figures: Figures, name: str, cluster: Cluster, seconds: float) -> None:
    part, _ = FLOODS[name]
    address = cluster.address_of(part)
    flooding = partial(run_child, "bench.attacks.flood:flood", name=name, address=address, seconds=seconds)
    await noticed.measure(figures, SECTION, name, cluster, part, partial(asyncio.to_thread, flooding), seconds)
