"""Every row of hours of committed log blocks, unmerged, with little memory: is each number there once, and each key in order?

The cluster runs with the dropping inside a flush switched off, so that every number has to be in exactly one block.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import Array, index_array, mask_array, pc
from headgate_tables.hudi.log.reader import RowsBlock, read_log_file
from support.committed_log import named_files, open_bytes
from support.journal import History


@dataclass(slots=True)
class Count:
    """Of one producer. ``seen``: uint8 by number; ``newest``: by hot key the largest number so far."""

    seen: np.ndarray
    newest: dict[str, int] = field(default_factory=dict)
    swapped: int = 0
    ghosts: int = 0


def count_rows(url: str, histories: Sequence[History]) -> dict[str, dict[str, int]]:
    """By producer: ``rows`` in committed blocks, ``lost`` (acknowledged and absent), ``doubled``, ``swapped`` and ``ghosts``."""
    store = open_bytes(url)
    counts = {each.producer: Count(np.zeros(each.attempts[-1].sent + 1, np.uint8)) for each in histories}
    files = named_files(store)
    completed = {file.instant for file in files}
    for file in sorted(files, key=lambda file: (file.rank, file.file_id, file.version)):
        for block in read_log_file(store.get(file.path), file.path, completed.__contains__, strict=True):
            if isinstance(block, RowsBlock):
                _take(counts, block.read().select(["id", "producer", "number"]))
    return {each.producer: _verdict(counts[each.producer], each) for each in histories}


def _take(counts: dict[str, Count], rows: pa.Table) -> None:
    producers = rows["producer"].combine_chunks().dictionary_encode()
    codes = producers.indices.to_numpy()
    numbers = rows["number"].to_numpy()
    for code, name in enumerate(producers.dictionary):
        count = counts[str(name)]
        own = np.flatnonzero(codes == code)
        inside = numbers[own] < len(count.seen)
        count.ghosts += int((~inside).sum())
        np.add.at(count.seen, numbers[own][inside], 1)
        _in_order(count, rows["id"].combine_chunks().take(index_array(own)), numbers[own])


def _in_order(count: Count, keys: Array, numbers: np.ndarray) -> None:
    """Keys that are written more than once, in their order of arrival: numbers of one key grow."""
    hot = pc.starts_with(keys, "hot").to_numpy(zero_copy_only=False)
    names, own = keys.filter(mask_array(hot)).dictionary_encode(), numbers[hot]
    codes = names.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    codes, own = codes[order], own[order]
    same = codes[1:] == codes[:-1]
    count.swapped += int((own[1:][same] <= own[:-1][same]).sum())
    for at, name in enumerate(map(str, names.dictionary)):
        mine = own[codes == at]
        count.swapped += int(mine[0] <= count.newest.get(name, 0))
        count.newest[name] = int(mine[-1])


def _verdict(count: Count, history: History) -> dict[str, int]:
    acked = count.seen[1 : history.known_committed + 1]
    return {
        "rows": int(count.seen.sum()),
        "lost": int((acked == 0).sum()),
        "doubled": int((count.seen > 1).sum()),
        "swapped": count.swapped,
        "ghosts": count.ghosts,
    }
