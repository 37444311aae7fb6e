"""Data files whose slots were deleted (rule G3): what the metadata of their commits still say of them. Never writes."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from headgate_tables.errors import CorruptFileError
from headgate_tables.face.results import Finding
from headgate_tables.hudi.timeline.active import Timeline, content_of
from headgate_tables.hudi.timeline.clean_metadata import decode_clean
from headgate_tables.hudi.timeline.commit_metadata import decode_commit
from headgate_tables.hudi.timeline.history import archived_contents
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER, WRITE_ACTIONS
from headgate_tables.storage.store import Store


@dataclass(slots=True)
class OlderFiles:
    """``listed``: size and first half of the SHA-256 ("" if unknown) of files by path; ``cleaned``: paths that a cleaning took;
    ``findings``: metadata that cannot be read.
    """

    listed: dict[str, tuple[int, str]] = field(default_factory=dict)
    cleaned: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)

    def take(self, instant: str, action: str, content: bytes, path: str, skipped: Collection[str]) -> None:
        """What one completed instant says. ``skipped``: of these the slots are left, and say more."""
        try:
            if action == "clean":
                for partition, names in decode_clean(content, path).files.items():
                    self.cleaned.update(f"{partition}/{name}".lstrip("/") for name in names)
            elif action in WRITE_ACTIONS and instant not in skipped:
                commit = decode_commit(content, path)
                digests = commit.digests()
                self.listed.update({file.path: (file.size, digests.get(file.path, "")) for file in commit.written()})
        except CorruptFileError as error:
            self.findings.append(Finding(path, error.message))


def read_older(store: Store, timeline: Timeline, history_folder: str, skipped: Collection[str]) -> OlderFiles:
    """Of active and archived instants."""
    found = OlderFiles()
    for instant in timeline.completed.values():
        if instant.action == "clean" or (instant.action in WRITE_ACTIONS and instant.time not in skipped):
            try:
                found.take(instant.time, instant.action, content_of(store, instant), instant.path, skipped)
            except CorruptFileError as error:
                found.findings.append(Finding(instant.path, error.message))
    try:
        for time, _, action, content in archived_contents(store, history_folder):
            found.take(time, action, content, f"{TIMELINE_FOLDER}/{history_folder} ({time})", skipped)
    except CorruptFileError as error:
        found.findings.append(Finding(f"{TIMELINE_FOLDER}/{history_folder}", error.message))
    return found


def check_older(store: Store, older: OlderFiles, sizes: Mapping[str, int], dead: Collection[str]) -> Iterator[Finding]:
    """``sizes``: of the files that are there, by path; ``dead``: names that slots gave up."""
    for path, (size, digest) in older.listed.items():
        if path in dead:
            continue
        if path not in sizes:
            # Other programs have more ways to take a file out of a table than we read of.
            if digest and path not in older.cleaned:
                yield Finding(path, "committed, but not there")
        elif (sizes[path] != size) if digest else (sizes[path] < size):
            yield Finding(path, f"has {sizes[path]} bytes, committed with {size}")
        elif digest and not _is_as(store, path, digest):
            yield Finding(path, "its bytes have changed since it was committed")


def _is_as(store: Store, path: str, digest: str) -> bool:
    try:
        return hashlib.sha256(store.get(path)).hexdigest().startswith(digest)
    except (FileNotFoundError, CorruptFileError):
        return False
