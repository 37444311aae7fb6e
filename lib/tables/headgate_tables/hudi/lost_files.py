"""Committed files that are gone from the store, of the newest slices: a listing does not miss them, what commits say does.

Rewriting a slice without one of its files makes the loss final: the file, put back from a copy later, would belong to an older
slice or to a file group that was replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headgate_tables.errors import MissingFileError
from headgate_tables.hudi.log.names import LogName, parse_base_name, parse_log_name
from headgate_tables.hudi.timeline.commit_metadata import CommitMetadata, decode_commit
from headgate_tables.hudi.timeline.history import archived_contents
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER, WRITE_ACTIONS, Instant
from headgate_tables.hudi.view import FileSystemView
from headgate_tables.storage.store import Store
from headgate_tables.storage.workers import Workers

_READS = 16
"""Instants that are read at once: an object store takes tens of milliseconds for each."""


class LostFiles:
    """Of one table. ``history_folder``: see ``Layout``."""

    def __init__(self, store: Store, history_folder: str) -> None:
        self._store = store
        self._history = history_folder

    def check(self, view: FileSystemView, is_about: Callable[[str], bool], since: str = "") -> None:
        """Raises MissingFileError for a file that a commit of ours put into the newest slice of a group, and that ``view`` lacks.

        Reads the metadata of all commits, of the history one file at a time; decoding takes some 0.2 ms for each commit and 0.02
        for each file. ``is_about``: whether a partition is of interest. ``since``: archived instants before it were compared
        earlier. Files of other programs are not missed: these have more ways to take one out of a table than we read of.
        Raises CorruptFileError for metadata that cannot be read; MissingFileError, too, for a commit that is gone from the
        timeline since it was listed, and is not in the history.
        """
        compared = _Compared(view, is_about)
        writes = view.timeline.writes()
        contents = Workers(1 if self._store.stages else _READS).map(self._content, writes)
        vanished: dict[str, str] = {}
        for instant, content in zip(writes, contents, strict=True):
            if content is None:
                vanished[instant.time] = instant.path
            else:
                compared.take(instant.completion, decode_commit(content, instant.path))
        # Behind the timeline: what has been archived since it was listed is found here.
        for each in archived_contents(self._store, self._history, since=since):
            vanished.pop(each.instant, None)
            if each.action in WRITE_ACTIONS:
                compared.take(each.completion, decode_commit(each.content, f"{TIMELINE_FOLDER}/{self._history}"))
        if vanished:
            raise MissingFileError(
                f"{min(vanished.values())} vanished while it was read, and the history does not have it",
                fix="Try again: a restore removes commits. If there was none, put the file back from a copy of the table.",
            )
        if lost := compared.lost():
            others = f", and so are {len(lost) - 1} more files" if len(lost) > 1 else ""
            raise MissingFileError(
                f"{lost[0]} is gone: it is committed, and nothing took it out of the table{others}",
                fix="Put it back from a copy of the table; `headgate verify TABLE` names every such file. Without a copy its "
                "rows are lost: write them again, compact the table (`headgate compact TABLE`), and do this then.",
            )

    def _content(self, instant: Instant) -> bytes | None:
        """None for an instant that is not there any more."""
        try:
            return self._store.get(instant.path).to_pybytes()
        except FileNotFoundError:
            return None


@dataclass(slots=True)
class _Group:
    """What a view lacks of one file group: base files by instant, logs with completion times."""

    bases: dict[str, str] = field(default_factory=dict)
    logs: list[tuple[str, str]] = field(default_factory=list)

    def newest_slice(self) -> list[str]:
        """The newest base file, and the logs that lie on it or on one that is there."""
        newest = max(self.bases, default="")
        return [*filter(None, [self.bases.get(newest)]), *(name for completion, name in self.logs if completion >= newest)]


class _Compared:
    """Takes commits in any order."""

    def __init__(self, view: FileSystemView, is_about: Callable[[str], bool]) -> None:
        self._view = view
        self._is_about = is_about
        self._replaced = set(view.replaced())
        self._bases: Mapping[tuple[str, str], str] = {
            (group.partition, group.file_id): max(group.bases) for group in view.groups() if group.bases
        }
        self._until = max((each.completion for each in view.timeline.completed.values()), default="")
        self._lacking: dict[tuple[str, str], _Group] = {}

    def take(self, completion: str, commit: CommitMetadata) -> None:
        """What one commit says."""
        if completion > self._until:
            return  # it is younger than the view
        for partition, file_ids in commit.replaced.items():
            self._replaced.update((partition, file_id) for file_id in file_ids)
        for path in commit.digests():
            partition, _, name = path.rpartition("/")
            if self._is_about(partition):
                self._expect(partition, name, completion)

    def _expect(self, partition: str, name: str, completion: str) -> None:
        parsed = parse_log_name(name) or parse_base_name(name)
        if parsed is None or self._view.holds(partition, parsed.file_id, name):
            return
        key = partition, parsed.file_id
        began = completion if isinstance(parsed, LogName) else parsed.instant
        if key in self._replaced or began < self._bases.get(key, ""):
            return
        group = self._lacking.setdefault(key, _Group())
        if isinstance(parsed, LogName):
            group.logs.append((completion, name))
        else:
            group.bases[parsed.instant] = name

    def lost(self) -> list[str]:
        """Paths of what the view lacks of newest slices."""
        return [
            f"{key[0]}/{name}".lstrip("/")
            for key, group in sorted(self._lacking.items())
            if key not in self._replaced
            for name in group.newest_slice()
        ]
