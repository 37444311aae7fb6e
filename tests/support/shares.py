"""Which writer wrote how much: COMMIT slots name where each file was staged, and so the process that wrote it (rule W2)."""

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import headgate
from headgate_tables.commitlog.publish import data_files
from headgate_tables.commitlog.slot import SLOT_FOLDER, STAGE_FOLDER, decode_slot, slot_path
from headgate_tables.hudi.log.reader import RowsBlock, read_log_file
from headgate_tables.storage.store import Store
from support.cluster import Cluster
from support.processes import READY_S, Died

Written: TypeAlias = Mapping[str, Sequence[str]]
"""Of one committed round: the paths of data files by process id."""


class Shares:
    """Of one table in a local store. ``rounds``: those with rows, as they were committed."""

    def __init__(self, store: Store) -> None:
        self.rounds: list[Written] = []
        self._store = store
        self._slots = 0

    def wait(self, writers: Collection[str], rounds: int, timeout: float = 3 * READY_S) -> Sequence[Written]:
        """The first ``rounds`` rounds of those at the end that these processes wrote, each a part, once there are so many."""
        deadline = time.monotonic() + timeout
        while len(theirs := self._at_the_end(writers)) < rounds:
            if time.monotonic() > deadline:
                raise Died(
                    f"only {len(theirs)} rounds of {sorted(writers)}; the last: {[list(each) for each in self.rounds[-5:]]}"
                )
            time.sleep(0.05)
            self._look()
        return theirs[:rounds]

    def ratio(self, written: Written) -> float:
        """Largest to smallest writer's share of a published round, in Arrow bytes of its rows: small files are mostly footer."""
        shares = [sum(map(self._row_bytes, paths)) for paths in written.values()]
        return max(shares) / min(shares)

    def _look(self) -> None:
        for _ in self._store.list_folder(SLOT_FOLDER).files[self._slots :]:
            slot = decode_slot(self._store.get(slot_path(self._slots)).to_pybytes(), self._slots)
            self._slots += 1
            if files := data_files(slot):
                written: dict[str, list[str]] = defaultdict(list)
                for file in files:
                    written[_process(file.stage)].append(file.path)
                self.rounds.append(written)

    def _at_the_end(self, writers: Collection[str]) -> Sequence[Written]:
        began = len(self.rounds)
        while began and self.rounds[began - 1].keys() == set(writers):
            began -= 1
        return self.rounds[began:]

    def _row_bytes(self, path: str) -> int:
        blocks = read_log_file(self._store.get(path), path, lambda instant: True, strict=True)
        return sum(block.read().nbytes for block in blocks if isinstance(block, RowsBlock))


def processes(cluster: Cluster) -> dict[str, str]:
    """The process id of each of the cluster's writers that is registered, by its name."""
    with headgate.connect(cluster.address) as hg:
        found = {writer.address: writer.process for writer in hg.status().writers}
    addresses = {name: cluster.address_of(name) for name in cluster.parts if name.startswith("writer-")}
    return {name: found[address] for name, address in addresses.items() if address in found}


def _process(stage: str) -> str:
    """``<stage folder>/<epoch>/<process id>/<file>``."""
    epoch, process, _ = stage.removeprefix(f"{STAGE_FOLDER}/").split("/")
    assert epoch.isdigit(), stage
    return process
