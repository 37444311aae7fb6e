"""Slots against timeline against files: what a table claims, checked byte by byte. Never writes."""

import hashlib
from collections.abc import Iterator

from headgate_tables.commitlog.publish import data_files, derived_files
from headgate_tables.commitlog.slot import Kind, Slot, slot_path
from headgate_tables.commitlog.state import LogState
from headgate_tables.commitlog.tail import read_state
from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.properties import PROPERTIES_PATH
from headgate_tables.hudi.results import Finding, Verification
from headgate_tables.hudi.timeline.active import Timeline, read_timeline
from headgate_tables.hudi.timeline.commit_metadata import decode_commit
from headgate_tables.hudi.view import list_data_files
from headgate_tables.storage.store import Store


def verify(store: Store) -> Verification:
    """Every slot's chain, bytes of every derived and data file, foreign instants, stray files of committed instants.

    A table that has no slots is checked by its commit metadata alone (sizes, not bytes).
    """
    timeline = read_timeline(store)
    if store.size(slot_path(0)) is None:
        findings = list(_check_metadata(store, timeline))
        return Verification(0, len(timeline.writes()), _count_files(timeline, store), findings)
    try:
        state, slots = read_state(store, folds=False)
    except CorruptFileError as error:
        return Verification(0, len(timeline.writes()), 0, [Finding(slot_path(0).rpartition("/")[0], str(error))])
    expected = {file.path for slot in slots for file in data_files(slot)}
    findings = [finding for slot in slots for finding in _check_slot(store, slot)]
    findings += [*_check_timeline(timeline, state), *_check_strays(store, timeline, expected)]
    return Verification(state.n + 1, len(state.commits), len(expected), findings)


def _check_slot(store: Store, slot: Slot) -> Iterator[Finding]:
    for path, content in derived_files(slot):
        try:
            same = store.get(path).to_pybytes() == content
        except FileNotFoundError:
            yield Finding(path, f"slot {slot.n} was won, but this file is not there yet; the next write puts it in place")
            continue
        # Spark and the metadata guard rewrite the properties; its own checksum covers it.
        if not same and path != PROPERTIES_PATH:
            yield Finding(path, f"its bytes are not those of slot {slot.n}")
    if slot.kind is Kind.COMMIT:
        for file in data_files(slot):
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
        if not state.knows(instant.time):
            yield Finding(instant.path, "no slot reserved this instant: another program wrote to the table")
        elif instant.completion and state.commits.get(instant.time) != instant.completion:
            yield Finding(instant.path, "completed, but no slot committed it so")


def _check_strays(store: Store, timeline: Timeline, expected: set[str]) -> Iterator[Finding]:
    """Readers believe names (interop fact 3): a file of a committed instant is read even if no commit lists it."""
    for path, instant in list_data_files(store):
        if path in expected:
            continue
        if instant in timeline.completed:
            yield Finding(path, f"carries the committed instant {instant}, which does not list it; readers would show its rows")
        elif instant < timeline.start:
            yield Finding(path, f"is older than the timeline, so readers would show its rows, but no slot committed {instant}")


def _check_metadata(store: Store, timeline: Timeline) -> Iterator[Finding]:
    for instant in timeline.writes():
        try:
            metadata = decode_commit(store.get(instant.path).to_pybytes(), instant.path)
        except CorruptFileError as error:
            yield Finding(instant.path, error.message)
            continue
        for stat in (stat for stats in metadata.stats.values() for stat in stats):
            size = store.size(stat["path"])
            if size is None:
                yield Finding(stat["path"], f"named by {instant.name}, but not there (cleaned, or lost)")
            elif size < stat["fileSizeInBytes"]:
                yield Finding(stat["path"], f"has {size} bytes, {instant.name} says {stat['fileSizeInBytes']}")


def _count_files(timeline: Timeline, store: Store) -> int:
    return sum(1 for _, instant in list_data_files(store) if instant in timeline.completed)
