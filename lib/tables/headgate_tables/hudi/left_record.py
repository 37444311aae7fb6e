"""What an owner says of the table when it leaves, and its slices now and then, so that rows do not wait while the next one lists.

Advisory: each part says for whom it counts. Without it the next owner lists timeline and table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from headgate_tables.commitlog.fields import Fields, Json, UnfitError, number, text
from headgate_tables.commitlog.state import LogState
from headgate_tables.face.results import SliceLogSize
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.timeline.instant import is_time
from headgate_tables.storage.store import Store

FRESH_MS: Final = 60_000
"""How long ``checked`` counts. Longer: what happens to the timeline of a table that nobody owns, as when it comes back from a
copy, is noticed later, by who lists it whole. Shorter: a hand-over that takes long lists it.
"""

_PATH: Final = f"{LOG_LAYOUT.folder}/left"


@dataclass(frozen=True, slots=True)
class LeftRecord:
    """``slot``: the newest one when it was left, ``left_ms`` since the epoch. ``checked``: the instant before which all of the
    timeline is ours, "" when that is not known. ``largest``: what slices hold at most, None when that is not known.
    """

    slot: int
    left_ms: int
    checked: str = ""
    largest: SliceLogSize | None = None

    def checked_at(self, slot: int, now_ms: int) -> str:
        """``checked`` for who takes over from the owner of ``slot``, the newest: it counts for a moment, and only if no slot was
        won since.
        """
        return self.checked if self.slot == slot and abs(now_ms - self.left_ms) < FRESH_MS else ""


NOTHING_LEFT: Final = LeftRecord(-1, 0)
"""What counts for nobody."""


def leave(store: Store, state: LogState, now_ms: int, checked: str, largest: SliceLogSize | None) -> None:
    """``checked``, ``largest``: see ``LeftRecord``. Raises RetryLater."""
    # The next owner tells the newest commit without another listing.
    checked = min(checked, max(state.commits, key=state.commits.__getitem__)) if state.commits else ""
    content: dict[str, Json] = {"slot": state.n, "left_ms": now_ms, "checked": checked}
    if largest is not None:
        content |= {"log_files": largest.log_files, "log_bytes": largest.log_bytes}
    store.replace(_PATH, [json.dumps(content).encode()])


def read_left(store: Store) -> LeftRecord:
    """What the newest owner that could say something has left; ``NOTHING_LEFT`` when that cannot be read. Raises RetryLater."""
    try:
        fields = Fields(json.loads(store.get(_PATH).to_pybytes()))
        slot, left_ms = fields.required("slot", number), fields.required("left_ms", number)
        checked = fields.required("checked", text)
        log_files = fields.optional("log_files", number)
        largest = SliceLogSize(log_files, fields.required("log_bytes", number)) if log_files is not None else None
        return LeftRecord(slot, left_ms, checked if is_time(checked) else "", largest)
    except (FileNotFoundError, ValueError, UnfitError):
        return NOTHING_LEFT
