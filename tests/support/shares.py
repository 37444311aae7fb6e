"""Which writer wrote how much: COMMIT slots name where each file was staged, and so the process that wrote it (rule W2)."""

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import headgate
from headgate_tables.commitlog.slot import decode_slot
from headgate_tables.hudi.log.reader import RowsBlock, read_log_file
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.storage.store import Store
from support.cluster import Cluster
from support.processes import READY_S, Died

Written: TypeAlias = Mapping[str, Sequence[str]]
"""Of one checkpoint: the paths of data files by process id."""


def written(store: Store) -> Sequence[Written]:
    """By checkpoint with rows, as they were committed to a table in a local store."""
    checkpoints: list[Written] = []
    for number in range(len(store.list_folder(LOG_LAYOUT.slots).files)):
        paths: dict[str, list[str]] = defaultdict(list)
        for file in decode_slot(store.get(LOG_LAYOUT.slot_path(number)).to_pybytes(), LOG_LAYOUT, number).files:
            epoch, process, _ = file.stage.removeprefix(f"{LOG_LAYOUT.stages}/").split("/")
            assert epoch.isdigit(), file.stage
            paths[process].append(file.path)
        if paths:
            checkpoints.append(paths)
    return checkpoints


def wait_for_checkpoints(store: Store, writers: Collection[str], count: int, timeout: float = 1.5 * READY_S) -> Sequence[Written]:
    """Of the checkpoints at the end that these processes wrote, each a part, the first ``count``, once there are so many."""
    deadline = time.monotonic() + timeout
    while len(theirs := _at_the_end(checkpoints := written(store), writers)) < count:
        if time.monotonic() > deadline:
            raise Died(
                f"only {len(theirs)} checkpoints of {sorted(writers)}; the last: {[list(each) for each in checkpoints[-5:]]}"
            )
        time.sleep(0.1)
    return theirs[:count]


def ratio(store: Store, of: Written) -> float:
    """Largest to smallest writer's share of a published checkpoint, in Arrow bytes of its rows: small files are mostly footer."""
    shares = [sum(_row_bytes(store, path) for path in paths) for paths in of.values()]
    return max(shares) / min(shares)


def processes(cluster: Cluster) -> dict[str, str]:
    """The process id of each of the cluster's writers that is registered, by its name."""
    with headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
        found = {writer.address: writer.process for writer in hg.status().writers}
    addresses = {name: cluster.address_of(name) for name in cluster.parts if name.startswith("writer-")}
    return {name: found[address] for name, address in addresses.items() if address in found}


def _at_the_end(checkpoints: Sequence[Written], writers: Collection[str]) -> Sequence[Written]:
    began = len(checkpoints)
    while began and checkpoints[began - 1].keys() == set(writers):
        began -= 1
    return checkpoints[began:]


def _row_bytes(store: Store, path: str) -> int:
    blocks = read_log_file(store.get(path), path, lambda instant: True, strict=True)
    return sum(block.read().nbytes for block in blocks if isinstance(block, RowsBlock))
