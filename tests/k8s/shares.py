"""How much of a checkpoint each writer wrote: rows name the process that wrote them by its number in the checkpoint."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from headgate_tables.hudi.log.reader import RowsBlock, read_log_file
from headgate_tables.hudi.timeline.commit_metadata import decode_commit
from headgate_tables.storage.store import Store
from k8s.commits import TIMELINE, Commit

SEQUENCE_NUMBER = "_hoodie_commit_seqno"
ROUNDS = 3
"""Checkpoints within which writers have to share the load evenly."""
OVER = 24
"""Checkpoints whose bytes are added. Each has some 150 rows: of 8, one in twelve even shares looked like more than 1.5."""


def written(store: Store, commit: Commit) -> Mapping[str, int]:
    """Arrow bytes of the rows in a commit's log files, by the number of the process that wrote them."""
    metadata = store.get(f"{TIMELINE}/{commit.instant}_{commit.completion}.deltacommit").to_pybytes()
    found: Counter[str] = Counter()
    for files in decode_commit(metadata, commit.instant).files.values():
        for file in files:
            found += _of_file(store, file.path, {commit.instant})
    return found


def _of_file(store: Store, path: str, instants: Collection[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for block in read_log_file(store.get(path), path, instants.__contains__, strict=True):
        if isinstance(block, RowsBlock):
            rows = block.read()
            _, process, _ = rows[SEQUENCE_NUMBER][0].as_py().split("_")
            found[process] += rows.nbytes
    return found


def ratio(checkpoints: Sequence[Mapping[str, int]], writers: int) -> float:
    """The fullest writer's bytes to the emptiest one's, over all these; infinite when a writer got none."""
    total: Counter[str] = Counter()
    for each in checkpoints:
        total.update(each)
    fullest, emptiest = max(total.values(), default=0), min(total.values(), default=0)
    return fullest / emptiest if emptiest and len(total) == writers else float("inf")


def ratio_after(checkpoints: Sequence[Mapping[str, int]], writers: int) -> float:
    """Of the checkpoints from ROUNDS after the first one that so many writers wrote; all are since their number changed.

    Raises ValueError when they are too few.
    """
    first = next((at for at, each in enumerate(checkpoints) if len(each) == writers), len(checkpoints))
    judged = checkpoints[first + ROUNDS : first + ROUNDS + OVER]
    if len(judged) < OVER:
        raise ValueError(
            f"of {len(checkpoints)} checkpoints, {len(judged)} come {ROUNDS} after the first one of {writers} writers"
        )
    return ratio(judged, writers)
