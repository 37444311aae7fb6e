"""Completed instants that somebody took off the timeline of a table of ours: the slots know them, a listing would not miss them.

Who reads without one shows rows missing, old ones again, or both a base file and the logs that are in it.
"""

from collections.abc import Collection, Mapping, Sequence

from headgate_tables.commitlog.bodies import Kind
from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.publish import derived_files, given_up
from headgate_tables.commitlog.slot import Slot
from headgate_tables.commitlog.state import LogState
from headgate_tables.commitlog.tail import read_state
from headgate_tables.errors import CorruptFileError, MissingFileError
from headgate_tables.hudi.guard import not_ours
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.timeline.active import Timeline, list_instants, read_timeline
from headgate_tables.hudi.timeline.history import archived_completions
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER, parse_instant
from headgate_tables.storage.store import Store

FIX = (
    "Until it is back, reads would be wrong: `headgate verify TABLE --repair`, or Table.repair(), puts it there from its slot; "
    "`verify` says if no slot is left, then restore it from a copy of the table."
)


def absent(state: LogState, slots: Sequence[Slot], timeline: Timeline) -> dict[str, str]:
    """Completed instants that have been on the timeline for certain and are not, with their completion times. Pure.

    ``slots``: those after the newest fold. A fold is written when all before it is published (rule G1), and so is any slot but
    FENCE and ADOPT, which come before what they put in place.
    """
    unpublished: set[str] = set()
    for slot in reversed(slots):
        unpublished.add(slot.instant)
        if slot.kind not in (Kind.FENCE, Kind.ADOPT):
            break
    gone = state.commits.keys() - timeline.completed.keys() - unpublished
    return {instant: state.commits[instant] for instant in sorted(gone)}


class LostInstants:
    """Looks for them whenever a handle has listed the timeline. The slots are read again only when something is missing."""

    def __init__(self, store: Store, history_folder: str, log: CommitLog | None) -> None:
        """``log``: None for a table of which no slots are known, or damaged ones: readers need no slot."""
        self._store = store
        self._folder = history_folder
        self._log = log
        self._known: tuple[LogState, Sequence[Slot]] | None = None

    def checked(self, timeline: Timeline, seen: Collection[str] = ()) -> Timeline:
        """The timeline to go on with, perhaps a newer one. ``seen``: instants that an earlier listing had completed.

        What completed since the slots were last read, and was gone before anybody here saw it, is found by the next handle.
        Raises MissingFileError for a lost instant, with its name.
        """
        if self._log is None:
            return timeline
        known = self._known if self._known and not self._log.owned else (self._log.state, self._log.unfolded)
        if not absent(*known, timeline) and all(time in timeline.completed for time in seen):
            return timeline
        try:
            lost, timeline = self.look_again()
        except CorruptFileError:  # readers need no slot
            return timeline
        if lost:
            instant, completion = next(iter(lost.items()))
            others = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
            raise MissingFileError(
                f"{TIMELINE_FOLDER}/{instant}_{completion}.* is gone: {instant} is committed, and nothing archived it or took it "
                f"back{others}",
                fix=FIX,
            )
        return timeline

    def look_again(self) -> tuple[Mapping[str, str], Timeline]:
        """Lost instants with their completion times, and the timeline without them. Raises CorruptFileError.

        Slots are read first, then the timeline, then the slots again: what was archived in between is not lost.
        """
        state, slots = self._known = read_state(self._store, LOG_LAYOUT)
        timeline = read_timeline(self._store)
        lost = absent(state, slots, timeline)
        return (self._unexplained(lost, timeline) if lost else lost), timeline

    def _unexplained(self, lost: Mapping[str, str], timeline: Timeline) -> Mapping[str, str]:
        state = read_state(self._store, LOG_LAYOUT)[0]
        shown = [*timeline.completed.values(), *timeline.pending.values(), *timeline.savepoints.values()]
        if not_ours(shown, state):
            return {}  # another program has written, and may have taken them back: for ``adopt`` to tell
        archived = archived_completions(self._store, self._folder, oldest=min(lost))
        return {time: lost[time] for time in lost if time in state.commits and time not in archived}


def put_back(log: CommitLog) -> None:
    """Creates the timeline's files that slots decided and that are not there. What no slot says any more stays lost.

    For the owner alone, right behind a slot of its own: else it could bring back what a successor has archived (hazard H8).
    """
    state, slots = read_state(log.store, LOG_LAYOUT, folds=False)
    dead, there = given_up(slots), {instant.path for instant in list_instants(log.store)}
    decided = [file for slot in slots for file in derived_files(slot) if file[0] not in dead and _is_active(file[0], state)]
    for path, content in decided:
        if path not in there:
            log.create(path, content)


def _is_active(path: str, state: LogState) -> bool:
    """Whether a derived file belongs on the timeline now."""
    instant = parse_instant(path.rpartition("/")[2]) if path.startswith(f"{TIMELINE_FOLDER}/") else None
    if instant is None:
        return False
    if instant.action == "savepoint":
        return instant.time in state.savepoints
    return instant.time in state.commits or instant.time in state.plans
