"""Removes what dead instants left behind: names go into a slot first, then the files go (rules RO6, D1, D2).

On a local disk that is staged bytes and pending timeline files; on an object store also data files under their final names.
"""

from headgate_tables.commitlog.ownership import CommitLog
from headgate_tables.commitlog.publish import REVOKED, make_durable
from headgate_tables.commitlog.slot import STAGE_FOLDER
from headgate_tables.hudi.timeline.active import list_instants
from headgate_tables.hudi.timeline.instant import State
from headgate_tables.hudi.view import list_data_files
from headgate_tables.storage.store import Store

FORGET_AFTER_MS = 3_600_000
"""A dead instant is looked for this long: a paused process may still create its files (rule W3)."""


def sweep(store: Store, log: CommitLog) -> int:
    """Deletes the files of dead instants; returns how many names it gave up. Data files first, then inflight, then requested."""
    dead = log.state.dead
    if not dead:
        return 0
    leftovers = _leftovers(store, dead)
    named = {instant: names for instant, names in leftovers.items() if names}
    swept = [instant for instant in dead if instant not in named and log.age_ms(instant) > FORGET_AFTER_MS]
    dead.update({instant: [] for instant in dead if instant not in named})
    if not named and not swept:
        return 0
    log.bury(named, swept)
    for names in named.values():
        store.delete(names)
    return sum(len(names) for names in named.values())


def drop_revoked_stages(store: Store, log: CommitLog) -> None:
    """Stage folders of older epochs, once what was won in them is linked and durable (rules W2, G1)."""
    revoked = [folder for folder in store.list_folder(STAGE_FOLDER).folders if REVOKED in folder]
    if revoked:
        make_durable(store, log.unfolded)
        for folder in revoked:
            store.delete_folder(f"{STAGE_FOLDER}/{folder}")


def _leftovers(store: Store, dead: dict[str, list[str] | None]) -> dict[str, list[str]]:
    """Names by dead instant, in the order of their deletion."""
    found: dict[str, list[str]] = {instant: list(names or ()) for instant, names in dead.items()}
    pending = [instant for instant in list_instants(store, after=min(dead)) if instant.time in found]
    announced = {instant.time for instant in pending}
    if announced and not store.stages:
        for path, instant_time in list_data_files(store):
            if instant_time in announced:
                found[instant_time].append(path)
    for path, instant_time in _revoked_files(store):
        if instant_time in found:
            found[instant_time].append(path)
    for state in (State.INFLIGHT, State.REQUESTED):
        for instant in pending:
            if instant.state is state:
                found[instant.time].append(instant.path)
    return {instant: list(dict.fromkeys(names)) for instant, names in found.items()}


def _revoked_files(store: Store) -> list[tuple[str, str]]:
    """Path and instant of what older epochs staged; the name begins with the instant (see Flusher)."""
    if not store.stages:
        return []
    stages = [f"{STAGE_FOLDER}/{folder}" for folder in store.list_folder(STAGE_FOLDER).folders if REVOKED in folder]
    processes = [f"{stage}/{process}" for stage in stages for process in store.list_folder(stage).folders]
    return [(f"{folder}/{name}", name.partition("_")[0]) for folder in processes for name in store.list_folder(folder).files]
