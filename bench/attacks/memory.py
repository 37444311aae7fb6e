"""Messages that never end, with and without a token: what a process keeps of them, and what others notice."""

import asyncio
from functools import partial
from typing import Final

from bench.attacks import noticed
from bench.attacks.attacked import attacked_cluster
from bench.attacks.attacker import ATTACKS
from bench.tables.child import run_child
from bench.tables.figures import Figures
from bench.tables.scratch import scratch_folder
from support.cluster import Cluster

SECTION: Final = "memory"
OF_WRITER: Final = [name for name, attack in ATTACKS.items() if attack.part == "writer-1"]
OF_COORDINATOR: Final = [name for name, attack in ATTACKS.items() if attack.part == "coordinator-1"]
_QUIET_S: Final = 8.0


def measure(figures: Figures, match: str, rounds: int, *, quick: bool) -> None:
    """Attacks whose name contains ``match``, each on a fresh cluster: what an allocator keeps is no part of the next."""
    for name in rounds * [each for each in ATTACKS if match in each]:
        with scratch_folder("attacks") as folder, attacked_cluster(folder) as cluster:
            asyncio.run(_measure(figures, name, cluster, 8 if quick else 1))


async def _measure(figures: Figures, name: str, cluster: Cluster, less: int) -> None:
    attack = ATTACKS[name]
    address, streams = cluster.address_of(attack.part), attack.streams // less
    attacking = partial(run_child, "bench.attacks.attacker:attack", name=name, address=address, streams=streams)
    await noticed.measure(
        figures, SECTION, name, cluster, attack.part, partial(asyncio.to_thread, attacking), _QUIET_S / min(less, 4)
    )
