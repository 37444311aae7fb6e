"""Which writer wrote how much: COMMIT slots name where each file was staged, and so the process that wrote it (rule W2)."""

import time
from collections import Counter
from collections.abc import Collection, Sequence

import headgate
from headgate_tables.commitlog.publish import data_files
from headgate_tables.commitlog.slot import SLOT_FOLDER, STAGE_FOLDER, decode_slot, slot_path
from headgate_tables.storage.store import Store
from support.cluster import Cluster
from support.processes import READY_S, Died


class Shares:
    """Of one table in a local store. ``rounds``: by committed round, the bytes of data files by process id."""

    def __init__(self, store: Store) -> None:
        self.rounds: list[Counter[str]] = []
        self._store = store
        self._slots = 0

    def look(self) -> None:
        """Reads what was committed since the last look."""
        for _ in self._store.list_folder(SLOT_FOLDER).files[self._slots :]:
            slot = decode_slot(self._store.get(slot_path(self._slots)).to_pybytes(), self._slots)
            self._slots += 1
            if files := data_files(slot):
                written: Counter[str] = Counter()
                for file in files:
                    written[_process(file.stage)] += file.size
                self.rounds.append(written)

    def wait(self, writers: Collection[str], rounds: int, timeout: float = READY_S) -> Sequence[Counter[str]]:
        """The first ``rounds`` rounds from the newest change on, once there are so many: ``writers`` wrote them and nobody else.

        A round in which one of them wrote nothing does not count as theirs.
        """
        deadline = time.monotonic() + timeout
        while len(theirs := self._newest_of(writers)) < rounds:
            if time.monotonic() > deadline:
                raise Died(f"of {sorted(writers)} there are only {len(theirs)} rounds at the end of {self.rounds}")
            time.sleep(0.05)
            self.look()
        return theirs[:rounds]

    def _newest_of(self, writers: Collection[str]) -> Sequence[Counter[str]]:
        began = len(self.rounds)
        while began and self.rounds[began - 1].keys() == set(writers):
            began -= 1
        return self.rounds[began:]


def ratio(rounds: Sequence[Counter[str]]) -> float:
    """Of the bytes of these rounds together, the largest writer's share to the smallest one's."""
    shares = sum(rounds, Counter[str]()).values()
    return max(shares) / min(shares)


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
