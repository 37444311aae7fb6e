"""The active timeline for people: every instant, what its commit wrote, and savepoints."""

from collections.abc import Sequence

from headgate_tables.face.results import InstantInfo, SavepointInfo
from headgate_tables.hudi.timeline.active import Timeline, content_of, read_timeline
from headgate_tables.hudi.timeline.commit_metadata import decode_commit
from headgate_tables.hudi.timeline.instant import WRITE_ACTIONS, Instant, State
from headgate_tables.hudi.timeline.savepoint_metadata import decode_saved
from headgate_tables.storage.store import Store


def newest_instants(store: Store, limit: int) -> list[InstantInfo]:
    """At most ``limit`` (0: all), oldest first; each completed write costs one read of its metadata. Raises CorruptFileError."""
    found = read_timeline(store)
    instants = sorted([*found.completed.values(), *found.pending.values()], key=lambda instant: instant.time)
    return [_describe(store, instant) for instant in instants[-limit if limit else 0 :]]


def describe_savepoints(store: Store, savepoints: Sequence[str]) -> list[SavepointInfo]:
    """Who made each and what for. Raises CorruptFileError."""
    timeline = read_timeline(store)
    return [_describe_savepoint(store, each, timeline) for each in savepoints]


def _describe_savepoint(store: Store, saved: str, timeline: Timeline) -> SavepointInfo:
    instant, point = timeline.savepoints.get(saved), timeline.completion(saved) or saved
    newer = sum(write.completion > point for write in timeline.writes())
    if instant is None or instant.state is not State.COMPLETED:
        return SavepointInfo(saved, "", "", 0, newer)
    found = decode_saved(content_of(store, instant), instant.path)
    return SavepointInfo(saved, found.comment, found.user, found.at_ms, newer)


def _describe(store: Store, instant: Instant) -> InstantInfo:
    known = (instant.time, instant.action, str(instant.state), instant.completion or None)
    if not instant.completion or instant.action not in WRITE_ACTIONS:
        return InstantInfo(*known)
    metadata = decode_commit(content_of(store, instant), instant.path)
    files = list(metadata.written())
    rows, deletes = sum(file.rows for file in files), sum(file.deletes for file in files)
    return InstantInfo(*known, files=len(files), rows=rows, deletes=deletes, bytes=sum(file.size for file in files))
