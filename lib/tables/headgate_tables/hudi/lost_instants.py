"""Completed instants that were deleted from the timeline of a table of ours: slots know them, a listing does not miss them.

Without such an instant, readers miss rows, show old ones again, or read both a base file and the logs that it contains.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from headgate_tables.commitlog.bodies import SlotKind
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
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER, Instant, parse_instant
from headgate_tables.storage.store import Store

FIX = (
    "Until it is back, reads would be wrong: `headgate verify TABLE --repair`, or Table.repair(), restores it from its slot; "
    "`verify` says if no slot is left, then restore it from a copy of the table."
)


def absent(state: LogState, slots: Sequence[Slot], timeline: Timeline) -> dict[str, str]:
    """Completed instants that were certainly on the timeline and are not, with their completion times. Pure.

    ``slots``: those after the newest fold. All before a fold is published (rule G1), and so is all before any slot but FENCE and
    ADOPT, which come before what they publish, and GRACE, whose owner publishes nothing.
    """
    unpublished: set[str] = set()
    for slot in reversed(slots):
        unpublished.add(slot.instant)
        if slot.kind not in (SlotKind.FENCE, SlotKind.ADOPT, SlotKind.GRACE):
            break
    gone = state.commits.keys() - timeline.completed.keys() - unpublished
    return {instant: state.commits[instant] for instant in sorted(gone)}


def drop_given_up(timeline: Timeline, state: LogState) -> None:
    """Takes from the timeline what a restore has undone, or the end of a savepoint: nothing of it is read, planned or saved any
    more, although a crash came before its files were deleted.
    """
    if gone := {name for names in state.deleting.values() for name in names}:
        timeline.drop(lambda instant: instant.time > state.archived and instant.path in gone)


class LostInstants:
    """Finds them whenever a handle has listed the timeline. Reads the slots again only when something is missing."""

    def __init__(self, store: Store, history_folder: str, log: CommitLog | None) -> None:
        """``log``: None for a table whose slots are unknown or damaged: readers need no slot."""
        self._store = store
        self._folder = history_folder
        self._log = log
        self._known: tuple[LogState, Sequence[Slot]] | None = None

    def checked(self, timeline: Timeline, seen: Collection[str] = ()) -> Timeline:
        """The timeline to use, perhaps a newer one. ``seen``: instants that were completed in an earlier listing.

        An instant that completed after the slots were last read, and vanished before this handle saw it, is for the next one.
        Raises MissingFileError for a lost instant, with its name.
        """
        if self._log is None:
            return timeline
        known = self._known if self._known and not self._log.owned else (self._log.state, self._log.unfolded)
        drop_given_up(timeline, known[0])
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
        drop_given_up(timeline, state)
        lost = absent(state, slots, timeline)
        return (self._unexplained(lost, timeline) if lost else lost), timeline

    def _unexplained(self, lost: Mapping[str, str], timeline: Timeline) -> Mapping[str, str]:
        state = read_state(self._store, LOG_LAYOUT)[0]
        shown = [*timeline.completed.values(), *timeline.pending.values(), *timeline.savepoints.values()]
        if not_ours(shown, state):
            return {}  # another program has written, and may have undone them: ``adopt`` finds out
        archived = archived_completions(self._store, self._folder, oldest=min(lost))
        return {time: lost[time] for time in lost if time in state.commits and time not in archived}


def timeline_after_fence(log: CommitLog, before: Iterable[Instant], since: str = "") -> Timeline:
    """The timeline from instant ``since`` on, for the owner right after its fence. ``before``: what was listed before it.

    That is not listed again, only what came later: a long timeline takes an object store many requests, and rows wait meanwhile.
    """
    timeline = Timeline()
    timeline.add(before)
    if gone := _gone(log, timeline, since):
        timeline.add(list_instants(log.store, after=gone[0]))  # names begin with the instant
    return timeline


def put_back_lost(log: CommitLog, before: Iterable[Instant], since: str = "") -> Timeline:
    """Puts completed instants back that are missing right after a fence. Returns ``timeline_after_fence``."""
    timeline = timeline_after_fence(log, before, since)
    if _gone(log, timeline, since):
        put_back(log)
    return timeline


def _gone(log: CommitLog, timeline: Timeline, since: str) -> list[str]:
    return [instant for instant in absent(log.state, (), timeline) if instant >= since]


def put_back(log: CommitLog) -> None:
    """Creates the timeline files that slots decided and that are missing. What no slot holds any more stays lost.

    For the owner alone, right after a slot of its own: otherwise it could bring back what a successor has archived (hazard H8).
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
