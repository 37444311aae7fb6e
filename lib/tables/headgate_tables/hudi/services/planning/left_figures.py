"""What an owner that leaves in order says of its slices, so that no commit of the next one waits for a listing of the table.

Advisory: it counts only for the owner whose fence is the very next slot, and without it the table is listed first.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Final

from headgate_tables.commitlog.fields import UnfitError, json_list, number
from headgate_tables.face.results import SliceLogSize
from headgate_tables.hudi.log.names import parse_log_name
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.storage.store import Store

_PATH: Final = f"{LOG_LAYOUT.folder}/slices"


def leave_figures(store: Store, slot: int, largest: SliceLogSize) -> None:
    """``slot``: the newest one, of which the figures are. Raises RetryLater."""
    store.replace(_PATH, [json.dumps([slot, largest.log_files, largest.log_bytes]).encode()])


def read_left_figures(store: Store, fence: int) -> SliceLogSize | None:
    """What the owner left that was there until slot ``fence``; None when it left nothing. Raises RetryLater."""
    try:
        slot, files, size = map(number, json_list(json.loads(store.get(_PATH).to_pybytes())))
    except (FileNotFoundError, ValueError, UnfitError):
        return None
    return SliceLogSize(files, size) if slot == fence - 1 else None


def at_most_after(largest: SliceLogSize, files: Mapping[str, Mapping[str, int]]) -> SliceLogSize:
    """What slices hold at most after a commit of these files: sizes by name and partition."""
    counts, sizes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for partition, names in files.items():
        for name, size in names.items():
            if (log := parse_log_name(name)) is not None:
                counts[partition, log.file_id] += 1
                sizes[partition, log.file_id] += size
    return SliceLogSize(largest.log_files + max(counts.values(), default=0), largest.log_bytes + max(sizes.values(), default=0))
