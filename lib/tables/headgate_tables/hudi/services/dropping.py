"""The end of a table: a DROP slot decides it, then this table's files go, and no other's (rules D5, D6, D7). Before it there may
be a grace time, in which a GRACE slot brings the table back (rule D9).

A process that dies on the way leaves it to the next one that opens the table: each step may be done again, by several at once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.facts import LogFacts
from headgate_tables.commitlog.fields import text
from headgate_tables.commitlog.layout import number_name
from headgate_tables.commitlog.records import DropRecord, GraceRecord
from headgate_tables.commitlog.tail import read_state
from headgate_tables.commitlog.tombstone import Tombstone, read_tombstone, write_tombstone
from headgate_tables.commitlog.win import create_for_certain
from headgate_tables.errors import CorruptFileError
from headgate_tables.face.results import DropResult
from headgate_tables.hudi.decisions.dropping import GraceChanged, TableDropped
from headgate_tables.hudi.log.names import parse_base_name, parse_log_name
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.partition_file import PARTITION_FILES
from headgate_tables.hudi.properties import PROPERTIES_PATH
from headgate_tables.hudi.services.own_files import OwnFiles, read_own_files
from headgate_tables.storage.store import Store
from headgate_tables.system import Clock

MOST_LEFT = 1_000
"""Names of files of others that a result has at most; it says how many there are."""
_PROPERTIES = (PROPERTIES_PATH, f"{PROPERTIES_PATH}.backup")
_FOLDERS = (".aux", ".bucket_index", ".heartbeat", ".index_defs", ".schema", ".temp", "archived", "metadata", "timeline")
"""Folders that Hudi makes in ``.hoodie`` for this table alone, the timeline last: it says what the data are (rule T7)."""


@dataclass(slots=True)
class _Folder:
    """``data``: sizes of the table's data files by path; ``marks``: its other files there; ``others``: of somebody else."""

    path: str
    data: dict[str, int]
    marks: list[str]
    others: list[str]


def drop(store: Store, log: CommitLog, clock: Clock, by: str) -> DropResult:
    """Wins the DROP slot and deletes the table's files. Raises as ``CommitLog.win_end``; after another error the table is
    dropped, and ``finish`` goes on.
    """
    log.win_end(TableDropped(by=by))
    if log.state.dropped is None:
        raise AssertionError("a DROP slot was won and drops nothing")
    return _remove(store, log.state, clock, log.state.dropped)


def begin_grace(log: CommitLog, clock: Clock, by: str, grace_ms: int) -> DropResult:
    """Drops the table, and keeps its files for ``grace_ms`` (rule D9). In its grace time already, it says until when, and changes
    nothing. Raises as ``drop``.
    """
    log.fence()
    if _grace_of(log) is None:
        log.win_end(GraceChanged(by=by, until=clock.now_ms() + grace_ms))
    grace = _grace_of(log)
    if grace is None:
        raise AssertionError("a GRACE slot was won and begins nothing")
    return DropResult(_id_of(log.state), log.state.epoch, grace.time, grace.by, 0, 0, (), 0, grace.until)


def undrop(log: CommitLog, by: str) -> bool:
    """Brings a table back that is in its grace time. False: it is in none, and nothing was decided. Raises as ``drop``."""
    if _grace_of(log) is None:
        return False
    log.fence()
    if _grace_of(log) is None:
        return False
    log.win_end(GraceChanged(by=by, until=0))
    return True


def drop_expired(store: Store, log: CommitLog, clock: Clock, now_ms: int) -> DropResult | None:
    """As ``drop``, if the table's grace time is over ``now_ms``. None: it is not, or somebody has brought the table back."""
    if _expired(log, now_ms) is None:
        return None
    log.fence()  # from here on nobody brings it back without deposing this handle
    grace = _expired(log, now_ms)
    return drop(store, log, clock, grace.by) if grace is not None else None


def _grace_of(log: CommitLog) -> GraceRecord | None:
    """Asked again after a call that changes the state: the type checker would take an attribute for what it was."""
    return log.state.grace


def _expired(log: CommitLog, now_ms: int) -> GraceRecord | None:
    grace = log.state.grace
    return grace if grace is not None and grace.until <= now_ms else None


def would_drop(store: Store, log: CommitLog) -> DropResult:
    """What ``drop`` would delete and leave. Writes nothing."""
    folders = list(_folders(store, read_own_files(store, log.state)))
    left = [path for each in folders for path in each.others]
    return _result(_id_of(log.state), log.state.epoch, None, {k: v for each in folders for k, v in each.data.items()}, left)


def finish(store: Store, clock: Clock) -> DropResult | None:
    """Deletes what a drop has left undone, if a table was dropped here; None otherwise. Raises as opening a log does."""
    tombstone = read_tombstone(store, LOG_LAYOUT)
    if tombstone is not None:
        _remove_log(store, clock, tombstone)
        return _result(tombstone.table, tombstone.epoch, tombstone.drop, {}, _left(store))
    if store.size(LOG_LAYOUT.slot_path(0)) is None:
        return None
    state, _ = read_state(store, LOG_LAYOUT)
    return _remove(store, state, clock, state.dropped) if state.dropped is not None else None


def _remove(store: Store, state: LogFacts, clock: Clock, drop: DropRecord) -> DropResult:
    """Readers find no table from the first step on, whatever of it is still there."""
    store.delete(_PROPERTIES)
    deleted: dict[str, int] = {}
    emptied: list[str] = []
    left: list[str] = []
    for folder in _folders(store, read_own_files(store, state)):
        # The data last: they show that the rest is the table's, too, also to the process that finishes this.
        store.delete([*folder.marks, *folder.data])
        deleted.update(folder.data)
        left += folder.others
        emptied.append(folder.path)
    for path in sorted(filter(None, emptied), key=lambda path: path.count("/"), reverse=True):
        store.delete_empty(path)
    for name in _FOLDERS:
        store.delete_folder(f"{LOG_LAYOUT.root}/{name}")
    tombstone = Tombstone(state.n, state.epoch, _id_of(state), drop)
    write_tombstone(store, LOG_LAYOUT, clock, tombstone)
    _remove_log(store, clock, tombstone)
    return _result(tombstone.table, tombstone.epoch, drop, deleted, left)


def _remove_log(store: Store, clock: Clock, tombstone: Tombstone) -> None:
    """An object store takes every file from everybody, so the DROP slot stays there, and a boundary, by which a process that wins
    an older number is deposed (rule G4).
    """
    if store.stages:
        _remove_root(store)
        return
    name = number_name(tombstone.n)
    create_for_certain(store, clock, f"{LOG_LAYOUT.bounds}/{name}", b"%d" % clock.now_ms(), durable=True)
    kept = {LOG_LAYOUT.slots: name, LOG_LAYOUT.bounds: name}
    for folder in store.list_folder(LOG_LAYOUT.folder).folders:
        path = f"{LOG_LAYOUT.folder}/{folder}"
        if path in kept:
            # Slot 0 last: it is what makes a table.
            names = sorted((each for each in store.list_folder(path).files if each != kept[path]), reverse=True)
            store.delete(f"{path}/{each}" for each in names)
        else:
            store.delete_folder(path)


def _remove_root(store: Store) -> None:
    """Takes a local folder's anchor away, without which nobody makes a file there (``LocalStore``), before what lies in it: a
    process in the middle of a write would else make its stage again, or find the number of a slot free.
    """
    removed = LOG_LAYOUT.removed_root
    store.rename_folder(LOG_LAYOUT.root, removed)
    for name in _FOLDERS:
        store.delete_folder(f"{removed}/{name}")  # once more: until the anchor was gone an old owner could make one again
    store.delete_folder(LOG_LAYOUT.removed_folder)
    store.delete_empty(removed)
    store.rename_folder(removed, LOG_LAYOUT.root)  # with files of others, if it is still there


def _folders(store: Store, table: OwnFiles | None) -> Iterator[_Folder]:
    """Every folder of the table with its files sorted; a folder with a table of its own, or behind a link, counts as one file.
    ``table``: None when its data files are gone.
    """
    pending = [""]
    while pending:
        path = pending.pop()
        try:
            listing = store.list_folder(path, sizes=True)
        except CorruptFileError:
            yield _Folder(path, {}, [], [path])
            continue
        if path and LOG_LAYOUT.root in listing.folders:
            yield _Folder(path, {}, [], [path])
            continue
        yield _sorted(path, listing.sizes, table)
        pending += [_join(path, name) for name in listing.folders if path or name != LOG_LAYOUT.root]
    yield _Folder(LOG_LAYOUT.root, {}, [], _others_in_root(store))


def _sorted(path: str, sizes: Mapping[str, int], table: OwnFiles | None) -> _Folder:
    """Rule D7: a folder in which data files lie, but none of the table's, is of somebody else with all its files."""
    files = {name: parsed for name in sizes if (parsed := parse_log_name(name) or parse_base_name(name)) is not None}
    data = table.data_in(path, files) if table is not None else []
    marks = [name for name in sizes if name in PARTITION_FILES] if data or not files else []
    ours = {*data, *marks}
    sums = [name for name in sizes if name.startswith(".") and name.endswith(".crc") and name[1:-4] in ours]
    ours.update(sums, [LOG_LAYOUT.tombstone] if path == "" else [])
    return _Folder(
        path,
        {_join(path, name): sizes[name] for name in data},
        [_join(path, name) for name in (*sums, *marks)],
        [_join(path, name) for name in sizes if name not in ours],
    )


def _others_in_root(store: Store) -> list[str]:
    """What lies in ``.hoodie`` and is neither Hudi's nor ours."""
    root = LOG_LAYOUT.root
    listing = store.list_folder(root)
    known = {LOG_LAYOUT.folder, *_PROPERTIES, *(f"{root}/{name}" for name in _FOLDERS), f"{root}/.hoodie.properties.crc"}
    return [path for name in (*listing.files, *listing.folders) if (path := f"{root}/{name}") not in known]


def _left(store: Store) -> list[str]:
    """Every file that is still there, but what is left of the table itself."""
    return [path for folder in _folders(store, None) for path in folder.others]


def _result(table: str, epoch: int, drop: DropRecord | None, data: Mapping[str, int], left: list[str]) -> DropResult:
    return DropResult(
        table=table,
        epoch=epoch,
        time=drop.time if drop else "",
        by=drop.by if drop else "",
        files=len(data),
        bytes=sum(data.values()),
        left=tuple(sorted(left)[:MOST_LEFT]),
        left_count=len(left),
    )


def _id_of(state: LogFacts) -> str:
    return text(state.config.get("table_uuid"))


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
