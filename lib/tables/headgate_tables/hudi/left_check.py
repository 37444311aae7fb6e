"""What an owner that leaves in order says of the timeline, so that the next one lists what came since, and rows do not wait.

Advisory: it counts for a moment, and only if no slot was won since. Without it the timeline is listed whole.
"""

from __future__ import annotations

import json
from typing import Final

from headgate_tables.commitlog.fields import UnfitError, json_list, number, text
from headgate_tables.commitlog.state import LogState
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.timeline.instant import is_time
from headgate_tables.storage.store import Store

FRESH_MS: Final = 60_000
"""How long it counts. Longer: what happens to the timeline of a table that nobody owns, as when it comes back from a copy, is
noticed later, by who lists it whole. Shorter: a hand-over that takes long lists it.
"""

_PATH: Final = f"{LOG_LAYOUT.folder}/checked"


def leave_check(store: Store, state: LogState, checked: str, now_ms: int) -> None:
    """``checked``: all of the timeline before this instant is ours; "" leaves nothing. Raises RetryLater."""
    if checked and state.commits:
        # The next owner tells the newest commit without another listing.
        newest = max(state.commits, key=state.commits.__getitem__)
        store.replace(_PATH, [json.dumps([state.n, min(checked, newest), now_ms]).encode()])


def read_left_check(store: Store, slot: int, now_ms: int) -> str:
    """The instant before which the owner of ``slot``, the newest, had checked the timeline a moment ago; "" when nothing says it.

    Raises RetryLater.
    """
    try:
        left, checked, at = json_list(json.loads(store.get(_PATH).to_pybytes()))
        counts = number(left) == slot and is_time(text(checked)) and abs(now_ms - number(at)) < FRESH_MS
        return text(checked) if counts else ""
    except (FileNotFoundError, ValueError, UnfitError):
        return ""
