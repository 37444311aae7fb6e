"""Finds files of archived instants that are back on the timeline: a process that slept too long has put them there (H8).

The timeline then begins with them, so that readers believe that the archived commits after them were never made.
"""

from typing import NamedTuple

from headgate_tables.commitlog.state import LogState
from headgate_tables.hudi.timeline.active import list_instants
from headgate_tables.hudi.timeline.history import archived_completions
from headgate_tables.hudi.timeline.instant import Instant, State
from headgate_tables.hudi.view import list_data_files
from headgate_tables.storage.store import Store


class Returned(NamedTuple):
    """Files of the timeline, oldest first. ``archived``: may be deleted, because the history holds their instants, or these never
    completed and have no data file. ``unclear``: nothing that is left decides it.
    """

    archived: list[Instant]
    unclear: list[Instant]


def find_returned(store: Store, history_folder: str, state: LogState) -> Returned:
    """``state`` is read first: files up to ``archived`` and not in ``deleting`` were deleted before. Raises CorruptFileError."""
    going = {name for names in state.deleting.values() for name in names}
    back = [each for each in list_instants(store) if each.time <= state.archived and each.action != "savepoint"]
    # Pending states before the completed one: as long as that is there, its rows are.
    back = sorted((each for each in back if each.path not in going), key=lambda each: (each.time, each.state is State.COMPLETED))
    found = Returned([], [])
    if not back:
        return found
    history = archived_completions(store, history_folder, oldest=back[0].time)
    with_data: set[str] = set()
    if any(each.time not in history for each in back):
        with_data = {time for _, time in list_data_files(store)}
    for each in back:
        if each.state is State.COMPLETED:
            known = history.get(each.time) == each.completion
        else:  # without data, nothing can become visible when the timeline begins behind it (hazard H9)
            known = each.time in history or each.time not in with_data
        (found.archived if known else found.unclear).append(each)
    return found


def take_away(store: Store, history_folder: str, state: LogState) -> list[str]:
    """Deletes the files that ``find_returned`` calls archived, and returns their paths. For the table's owner.

    Slots have declared these names dead before (rule D1), and archived instants never come back on purpose (rule D2).
    """
    paths = [each.path for each in find_returned(store, history_folder, state).archived]
    for path in paths:
        store.delete([path])
    return paths
