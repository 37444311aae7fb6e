"""Names of the timeline's files (layout 2): ``T.action.requested``, ``T.action.inflight``, ``T_C.action``.

Hudi: InstantFileNameGeneratorV2, InstantFileNameParserV2.
"""

import enum
from dataclasses import dataclass

TIMELINE_FOLDER = ".hoodie/timeline"
NEVER = "9"
"""Later than any instant or completion time."""
_ROW_ACTIONS = ("commit", "deltacommit", "compaction", "logcompaction", "clustering", "replacecommit")
ACTIONS = frozenset([*_ROW_ACTIONS, "clean", "rollback", "restore", "savepoint", "indexing"])
WRITE_ACTIONS = frozenset(["commit", "deltacommit", "replacecommit"])
"""Completed actions that add data files."""


class State(enum.StrEnum):
    """How far an instant has got."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class Instant:
    """One file of the timeline. ``completion`` is "" unless the state is completed."""

    time: str
    action: str
    state: State
    completion: str = ""

    @property
    def path(self) -> str:
        """From the table's root."""
        return f"{TIMELINE_FOLDER}/{self.name}"

    @property
    def name(self) -> str:
        """The file's name; that of an inflight ``commit`` lacks the action."""
        if self.state is State.COMPLETED:
            return f"{self.time}_{self.completion}.{self.action}"
        if self.action == "commit" and self.state is State.INFLIGHT:
            return f"{self.time}.inflight"
        return f"{self.time}.{self.action}.{self.state}"


def parse_instant(name: str) -> Instant | None:
    """The instant of a file name; None for other files (``.crc`` neighbours, leftovers of other programs)."""
    time, _, rest = name.partition(".")
    if "_" in time:
        time, _, completion = time.partition("_")
        known = rest in ACTIONS and is_time(time) and is_time(completion)
        return Instant(time, rest, State.COMPLETED, completion) if known else None
    action, _, state = rest.rpartition(".")
    if rest == "inflight":
        action = "commit"
    if action not in ACTIONS or state not in (State.REQUESTED, State.INFLIGHT) or not is_time(time):
        return None
    return Instant(time, action, State(state))


def is_time(text: str) -> bool:
    """17 digits; 14 in old tables."""
    return len(text) in (14, 17) and text.isascii() and text.isdigit()
