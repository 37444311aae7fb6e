"""What slices hold at most, from what an owner has left of them, so that no commit of the next one waits for a listing.

It counts for who has read all slots since, and only if these cannot have made a slice fuller than their files do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from headgate_tables.commitlog.bodies import SlotKind
from headgate_tables.commitlog.slot import Slot
from headgate_tables.face.results import SliceLogSize
from headgate_tables.hudi.left_record import LeftRecord
from headgate_tables.hudi.log.names import parse_log_name

LEFT_EVERY: Final = 25
"""Slots between figures. Fewer: more requests to the store; more: what slices hold at most is further above what they hold."""

_ADDING: Final = frozenset(
    [
        *(SlotKind.FENCE, SlotKind.RESERVE, SlotKind.COMMIT, SlotKind.OFFSETS, SlotKind.DEAD),
        *(SlotKind.PLAN, SlotKind.PLAN_DONE, SlotKind.CLEAN, SlotKind.ARCHIVE, SlotKind.SAVEPOINT),
    ]
)
"""Kinds of slots after which no slice holds more than before and the slot's files together. Not a cancelled plan, which makes one
slice of two, nor what brings slices back.
"""


def largest_at(fence: int, left: LeftRecord, slots: Sequence[Slot]) -> SliceLogSize | None:
    """What slices hold at most at slot ``fence``, by what an owner left and by ``slots``, those after the newest fold; None when
    that does not say it. Pure.
    """
    if left.largest is None:
        return None
    later = [each for each in slots if left.slot < each.n < fence]
    if len(later) != fence - left.slot - 1 or any(each.kind not in _ADDING for each in later):
        return None
    written: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for file in (file for each in later for file in each.files):
        partition, _, name = file.path.rpartition("/")
        written[partition][name] = file.size
    return at_most_after(left.largest, written)


def at_most_after(largest: SliceLogSize, files: Mapping[str, Mapping[str, int]]) -> SliceLogSize:
    """What slices hold at most after a commit of these files: sizes by name and partition."""
    counts, sizes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for partition, names in files.items():
        for name, size in names.items():
            if (log := parse_log_name(name)) is not None:
                counts[partition, log.file_id] += 1
                sizes[partition, log.file_id] += size
    return SliceLogSize(largest.log_files + max(counts.values(), default=0), largest.log_bytes + max(sizes.values(), default=0))
