"""The archived part of the timeline, an LSM tree of instants (Hudi: LSMTimelineWriter).

Readers need it when files are older than the active timeline: a log's slice follows from its completion time, also after
archiving. Nothing in a file of the history ever becomes wrong; a file is only missing or superseded.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from headgate_tables.arrow import pc
from headgate_tables.errors import CorruptFileError, StoreUnavailableError
from headgate_tables.hudi.timeline.history_files import (
    SCHEMA,
    VERSION_FILE,
    Archived,
    HistoryFile,
    HistoryFolder,
    Manifest,
    completions_of,
    data_file,
    encode_file,
    manifest_numbers,
    metadata_of,
    rows_of,
)
from headgate_tables.storage.store import Outcome, Store

FILES_PER_LEVEL = 10
"""When a level has so many files they become one of the next (hoodie.timeline.compaction.batch.size)."""
MANIFESTS_KEPT = 3
"""Readers may be using an older manifest than the newest; all files that one of these names are kept."""
_LARGEST_MERGE = 16 << 20
"""Compressed bytes of files to merge: they are all in memory then, some ten times larger."""
_TOP_LEVEL = 9
"""A level is one digit in a name."""


def archived_completions(store: Store, history_folder: str, *, oldest: str = "") -> dict[str, str]:
    """Instant time to completion time of every archived instant from ``oldest`` on. Skips files that, by their names, hold older
    ones only. Raises CorruptFileError.
    """
    folder = HistoryFolder(store, history_folder)
    completions: dict[str, str] = {}
    for file in folder.named(folder.names()).files:
        if file.last >= oldest:
            found = completions_of(folder.read(file.name, ["instantTime", "completionTime"]))
            # Not a kernel: a scalar of pyarrow imports pandas to see what it was given, see ``headgate_tables.arrow``.
            completions.update((instant, completion) for instant, completion in found.items() if instant >= oldest)
    return completions


def archived_metadata(store: Store, history_folder: str, instants: Collection[str]) -> dict[str, bytes]:
    """The content of the completed files of those ``instants`` that are archived. Raises CorruptFileError."""
    folder = HistoryFolder(store, history_folder)
    wanted = pa.array(sorted(instants), pa.string())
    found: dict[str, bytes] = {}
    for file in folder.named(folder.names()).files:
        if file.may_hold(instants):
            rows = folder.read(file.name, ["instantTime", "metadata"])
            rows = rows.filter(pc.and_(pc.is_in(rows["instantTime"], wanted), pc.is_valid(rows["metadata"])))
            found.update(metadata_of(rows))
    return found


class ArchivedContent(NamedTuple):
    """An archived instant, and the bytes of its completed file."""

    instant: str
    completion: str
    action: str
    content: bytes


def archived_contents(store: Store, history_folder: str, *, since: str = "") -> Iterator[ArchivedContent]:
    """Every archived instant that has a completed file, from ``since`` on: one file of the history in memory at a time, the one
    of the newest instants first. Raises CorruptFileError.
    """
    folder = HistoryFolder(store, history_folder)
    for file in sorted(folder.named(folder.names()).files, key=lambda file: file.last, reverse=True):
        if file.last < since:
            return
        rows = folder.read(file.name, ["instantTime", "completionTime", "action", "metadata"]).to_pydict()
        for instant, completion, action, content in zip(*rows.values(), strict=True):
            if instant >= since and action is not None and content is not None:
                # As in Hudi, an instant without a completion time completed when it began.
                yield ArchivedContent(instant, completion or instant, action, content)


def append_history(store: Store, history_folder: str, entries: Sequence[Archived]) -> None:
    """Adds completed instants that are not there yet, each once, and merges files where a level has become full.

    Files are durable before a manifest names them, and the manifest before ``_version_`` does. Interrupted anywhere, the
    history is as before or as after, and repeating the call gives the same result
    (test_an_append_that_was_stopped_anywhere_is_repeated). For one caller at a time, the table's owner.
    Raises CorruptFileError, StoreUnavailableError (call again), ValueError for two entries of one instant.
    """
    if len({entry.instant for entry in entries}) < len(entries):
        raise ValueError("two entries of one instant")
    folder = HistoryFolder(store, history_folder)
    names = folder.names()
    named, numbers = folder.named(names), manifest_numbers(names)
    # A newer manifest than the named one is of a process that stopped before it wrote `_version_`; its files exist.
    known = next(folder.readable(number for number in reversed(numbers) if number > named.number), named)
    files = _merge(store, folder, [*known.files, *_add(store, folder, _missing(folder, known, entries))])
    number = known.number
    if tuple(files) != known.files:
        number = max([0, *numbers]) + 1
        path = folder.at(f"manifest_{number}")
        if not _create(store, path, Manifest(number, tuple(files)).encode()):
            raise StoreUnavailableError(f"{path} was written by another process meanwhile", fix="Archive again.")
    if number and (number != named.number or VERSION_FILE not in names):
        store.replace(folder.at(VERSION_FILE), [str(number).encode()])


def obsolete_history(store: Store, history_folder: str) -> list[str]:
    """Paths, from the table's root, of files that no reader needs any more: all manifests but the last three, and Parquet
    files that none of those names.

    No later append uses such a name again, so the names may be declared dead (rule D1): a name begins with the first instant
    in the file, and a file of the newest manifest must hold that instant, at the dead file's level or above. Files of an
    interrupted append are not returned until then. Raises CorruptFileError.
    """
    folder = HistoryFolder(store, history_folder)
    names = set(folder.names())
    named, numbers = folder.named(names), manifest_numbers(names)
    first_kept = min([named.number, *numbers[-MANIFESTS_KEPT:]])
    others = folder.readable(number for number in numbers if number >= first_kept and number != named.number)
    kept = {file.name for manifest in (named, *others) for file in manifest.files}
    found = [f"manifest_{number}" for number in numbers if number < first_kept]
    loose = [file for file in map(data_file, sorted(names - kept)) if file is not None]
    found += [file.name for file in loose if _is_superseded(folder, file, named)]
    checksums = [f".{name}.crc" for name in found if f".{name}.crc" in names]  # Hadoop's, beside what Spark wrote
    return [folder.at(name) for name in [*found, *checksums]]


def _is_superseded(folder: HistoryFolder, loose: HistoryFile, named: Manifest) -> bool:
    return loose.first in folder.instants(
        file for file in named.files if file.level >= loose.level and file.may_hold([loose.first])
    )


def _missing(folder: HistoryFolder, known: Manifest, entries: Sequence[Archived]) -> list[Archived]:
    asked = {entry.instant for entry in entries}
    there = folder.instants(file for file in known.files if file.may_hold(asked))
    return sorted((entry for entry in entries if entry.instant not in there), key=lambda entry: entry.instant)


def _add(store: Store, folder: HistoryFolder, entries: Sequence[Archived]) -> Iterable[HistoryFile]:
    """Files of level 0 with these entries: more than one if an interrupted append of other entries left that name."""
    if not entries:
        return []
    file = _write(store, folder, entries[0].instant, entries[-1].instant, 0, rows_of(entries))
    if file is not None:
        return [file]
    if len(entries) == 1:
        raise CorruptFileError(
            f"{folder.at(f'{entries[0].instant}_{entries[0].instant}_0.parquet')} holds something other than that instant",
            fix="No manifest names it: move it away.",
        )
    half = len(entries) // 2
    return [*_add(store, folder, entries[:half]), *_add(store, folder, entries[half:])]


def _merge(store: Store, folder: HistoryFolder, files: Sequence[HistoryFile]) -> list[HistoryFile]:
    """The same instants in fewer files: level by level, the oldest ten become one of the next level, at the end of the list."""
    left = list(files)
    for level in range(_TOP_LEVEL):
        chosen = _oldest_group(sorted((file for file in left if file.level == level), key=lambda file: file.first))
        if not chosen:
            continue
        rows = pa.concat_tables(folder.read(file.name, SCHEMA.names) for file in chosen)
        first, last = min(file.first for file in chosen), max(file.last for file in chosen)
        merged = _write(store, folder, first, last, level + 1, rows)
        if merged is None:
            continue  # an interrupted append of other entries left it; with the next file of this level the name is another
        left = [*(file for file in left if file not in chosen), merged]
    return left


def _oldest_group(files: Sequence[HistoryFile]) -> list[HistoryFile]:
    """Neighbours to merge now; none when the level is not full (Hudi: getCandidateFiles)."""
    if len(files) < FILES_PER_LEVEL:
        return []
    chosen: list[HistoryFile] = []
    for file in files:
        if sum(each.size for each in chosen) + file.size > _LARGEST_MERGE:
            if len(chosen) > 1:
                break
            chosen = []
        if file.size <= _LARGEST_MERGE:
            chosen.append(file)
        if len(chosen) == FILES_PER_LEVEL:
            break
    return chosen if len(chosen) > 1 else []


def _write(store: Store, folder: HistoryFolder, first: str, last: str, level: int, rows: pa.Table) -> HistoryFile | None:
    """Creates a file, or uses an existing one with the same content; None if that has another."""
    content = encode_file(rows).to_pybytes()
    file = HistoryFile(first, last, level, len(content))
    path = folder.at(file.name)
    if _create(store, path, content):
        return file
    try:
        found = folder.read(file.name, SCHEMA.names)
    except CorruptFileError:
        return None  # Spark writes in place: killed, it leaves half a file
    return replace(file, size=store.size(path) or 0) if found.equals(rows.cast(SCHEMA)) else None


def _create(store: Store, path: str, content: bytes) -> bool:
    """Whether this call created the file, or it has the same bytes."""
    outcome = store.create(path, [content], durable=True)
    if outcome is Outcome.UNKNOWN:
        raise StoreUnavailableError(f"the store did not say whether {path} was created", fix="Archive again.")
    try:
        return outcome is Outcome.CREATED or store.get(path).to_pybytes() == content
    except FileNotFoundError:
        return False
