"""Compares slots, timeline and files: what a table claims, checked byte by byte. Never writes."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from headgate_tables.commitlog.first_slot import lost_first_slot
from headgate_tables.commitlog.publish import derived_files, given_up
from headgate_tables.commitlog.slot import Slot
from headgate_tables.commitlog.state import LogState
from headgate_tables.commitlog.tail import read_state
from headgate_tables.errors import CorruptFileError
from headgate_tables.face.results import Finding, Verification
from headgate_tables.hudi.log.names import claimed_instant, parse_base_name, parse_log_name
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.lost_instants import LostInstants
from headgate_tables.hudi.older_files import check_older, read_older
from headgate_tables.hudi.partition_file import is_usable
from headgate_tables.hudi.properties import PROPERTIES_PATH
from headgate_tables.hudi.readable import unread
from headgate_tables.hudi.returned_instants import find_returned
from headgate_tables.hudi.timeline.active import Timeline, content_of, read_timeline
from headgate_tables.hudi.timeline.commit_metadata import decode_commit
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER
from headgate_tables.hudi.view import data_files_in, list_folders
from headgate_tables.storage.store import Store

Folders: TypeAlias = Sequence[tuple[str, Mapping[str, int]]]
"""The result of ``list_folders``."""
_REPAIR = "the next owner of the table puts it in place, or `headgate verify TABLE --repair`"


def verify(store: Store, history_folder: str) -> Verification:
    """Checks every slot's chain, the bytes of every derived and data file, and looks for foreign instants and stray files.

    Files whose slots were deleted (rule G3) are checked against the metadata of their commits, archived ones too.
    A table without slots is checked by its commit metadata alone (sizes, not bytes).
    """
    timeline = read_timeline(store)
    if store.size(LOG_LAYOUT.slot_path(0)) is None:
        lost = lost_first_slot(store, LOG_LAYOUT)
        findings = [Finding(LOG_LAYOUT.slot_path(0), lost.message)] if lost is not None else []
        folders = list(list_folders(store))
        findings += _check_metadata(store, timeline)
        findings += _check_kinds(folders, timeline)
        return Verification(0, len(timeline.writes()), _count_files(folders, timeline), findings)
    try:
        state, slots = read_state(store, LOG_LAYOUT, folds=False)
    except CorruptFileError as error:
        return Verification(0, len(timeline.writes()), 0, [Finding(LOG_LAYOUT.slot_path(0).rpartition("/")[0], str(error))])
    dead = given_up(slots)
    expected = {file.path for slot in slots for file in slot.files} - dead
    findings = [finding for slot in slots for finding in _check_slot(store, slot, dead)]
    findings += _check_timeline(timeline, state)
    findings += _check_lost(store, history_folder, slots)
    findings += _check_returned(store, history_folder, state)
    folders = list(list_folders(store))
    findings += _check_kinds(folders, timeline)
    older = read_older(store, timeline, history_folder, {slot.instant for slot in slots if slot.files})
    sizes = {f"{folder}/{name}".lstrip("/"): size for folder, names in folders for name, size in names.items()}
    findings += [*older.findings, *check_older(store, older, sizes, dead)]
    strays = list(_unexplained(folders, timeline, expected))
    expected |= {path for path, _ in strays if path in older.listed}
    findings += _check_strays(timeline, [found for found in strays if found[0] not in older.listed])
    return Verification(state.n + 1, len(state.commits), len(expected), findings)


def _check_slot(store: Store, slot: Slot, dead: Collection[str]) -> Iterator[Finding]:
    for path, content in derived_files(slot):
        if path in dead:
            continue
        try:
            found = store.get(path).to_pybytes()
        except FileNotFoundError:
            yield Finding(path, f"slot {slot.n} decided it, but it is not there; {_REPAIR}")
            continue
        # Spark and the metadata guard rewrite the properties, which have a checksum. Any program may write a partition's file.
        if found != content and path != PROPERTIES_PATH and not is_usable(path, found):
            yield Finding(path, f"its bytes are not those of slot {slot.n}")
    for file in slot.files:
        if file.path not in dead:
            yield from _check_file(store, file.path, file.size, file.sha256)


def _check_file(store: Store, path: str, size: int, sha256: str) -> Iterator[Finding]:
    try:
        content = store.get(path)
    except FileNotFoundError:
        yield Finding(path, "committed, but not there")
        return
    if content.size != size:
        yield Finding(path, f"has {content.size} bytes, committed with {size}")
    elif hashlib.sha256(content).hexdigest() != sha256:
        yield Finding(path, "its bytes have changed since it was committed")


def _check_timeline(timeline: Timeline, state: LogState) -> Iterator[Finding]:
    for instant in [*timeline.completed.values(), *timeline.pending.values()]:
        if not state.has_reserved(instant.time):
            yield Finding(instant.path, "no slot reserved this instant: another program wrote to the table")
        elif instant.completion and not state.has_completed(instant.time, instant.action, instant.completion):
            left = "given up, and not deleted yet: the next write to the table deletes it"
            yield Finding(instant.path, left if state.gives_up(instant.path) else "completed, but no slot committed it so")


def _check_lost(store: Store, history_folder: str, slots: Sequence[Slot]) -> Iterator[Finding]:
    """Looks for instants whose slots are gone; the files of other instants are checked one by one."""
    left = {slot.instant for slot in slots}
    for instant, completion in LostInstants(store, history_folder, None).look_again()[0].items():
        if instant not in left:
            yield Finding(
                f"{TIMELINE_FOLDER}/{instant}_{completion}.*",
                "committed, but not there, and no slot is left that says what it holds; restore it from a copy of the table",
            )


def _check_returned(store: Store, history_folder: str, state: LogState) -> Iterator[Finding]:
    """An archived instant that is back hides rows of other commits, which are themselves intact."""
    found = find_returned(store, history_folder, state)
    why = "archived, but on the timeline again, so that readers believe that archived commits after it were never made"
    for instant in found.archived:
        yield Finding(instant.path, f"{why}; `headgate verify TABLE --repair` removes it")
    for instant in found.unclear:
        yield Finding(instant.path, f"{why}, and the history does not hold it; ask who wrote it, then move it away")


def _unexplained(folders: Folders, timeline: Timeline, expected: Collection[str]) -> Iterator[tuple[str, str]]:
    """Path and instant of files that readers show, but that no slot which is left names."""
    for path, instant in data_files_in(folders):
        if path not in expected and (instant in timeline.completed or instant < timeline.start):
            yield path, instant


def _check_strays(timeline: Timeline, unexplained: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    """Readers trust names (fact HF1): they read a file of a committed instant even if no commit lists it."""
    for path, instant in unexplained:
        if instant in timeline.completed:
            yield Finding(path, f"carries the committed instant {instant}, which does not list it; readers would show its rows")
        else:
            yield Finding(path, f"is older than the timeline, so readers would show its rows, but no slot committed {instant}")


def _check_kinds(folders: Folders, timeline: Timeline) -> Iterator[Finding]:
    """Files that carry a committed instant and cannot be read here; they may hold rows of the table."""
    for folder, names in folders:
        for name in names:
            base = parse_base_name(name)
            instant = claimed_instant(name) if base is None else None if base.is_read else base.instant
            if instant is not None and (instant in timeline.completed or instant < timeline.start):
                yield Finding(f"{folder}/{name}".lstrip("/"), unread(name))


def _check_metadata(store: Store, timeline: Timeline) -> Iterator[Finding]:
    for instant in timeline.writes():
        try:
            metadata = decode_commit(content_of(store, instant), instant.path)
        except CorruptFileError as error:
            yield Finding(instant.path, error.message)
            continue
        for file in metadata.written():
            if _is_strange(file.name):
                yield Finding(file.path, f"named by {instant.name}, but its name is of no known kind")
            size = store.size(file.path)
            if size is None:
                yield Finding(file.path, f"named by {instant.name}, but not there (cleaned, or lost)")
            elif size < file.size:
                yield Finding(file.path, f"has {size} bytes, {instant.name} says {file.size}")


def _is_strange(name: str) -> bool:
    """Whether the name is of no known kind, and ``_check_kinds`` would not report it either."""
    return parse_log_name(name) is None and parse_base_name(name) is None and claimed_instant(name) is None


def _count_files(folders: Folders, timeline: Timeline) -> int:
    return sum(1 for _, instant in data_files_in(folders) if instant in timeline.completed)
