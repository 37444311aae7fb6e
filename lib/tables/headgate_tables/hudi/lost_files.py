"""Committed files that are gone from the store, of the newest slices: a listing does not miss them, what commits say does.

Rewriting a slice without one of its files makes the loss final: the file, put back from a copy later, would belong to an older
slice or to a file group that was replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate_tables.errors import MissingFileError
from headgate_tables.hudi.aged_files import AgedFiles, read_aged
from headgate_tables.hudi.log.names import LogName, parse_base_name, parse_log_name
from headgate_tables.hudi.timeline.active import content_of, read_timeline
from headgate_tables.hudi.timeline.commit_metadata import CommitMetadata, decode_commit
from headgate_tables.hudi.timeline.history import archived_completions, archived_contents
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER, WRITE_ACTIONS, Instant
from headgate_tables.hudi.view import FileSystemView, list_folders
from headgate_tables.storage.store import Store
from headgate_tables.storage.workers import Workers

_READS = 16
"""Instants that are read at once: an object store takes tens of milliseconds for each."""


class CommittedFile(NamedTuple):
    """A file that a commit of ours names. ``size``: bytes."""

    instant: str
    completion: str
    partition: str
    name: str
    size: int

    @property
    def path(self) -> str:
        """From the table's root."""
        return f"{self.partition}/{self.name}".lstrip("/")


def find_unlisted(store: Store, history_folder: str, view: FileSystemView) -> list[CommittedFile]:
    """Files that commits of ours put into the newest slice of a group, and that ``view`` lacks: they are lost, or came after its
    listing.

    Reads the metadata of all writes of the timeline, whose number settings bound (about 0.03 ms of CPU for each file that they
    name), and the history only when ``AgedFiles`` shows that the view lacks some of it. For any thread. Raises CorruptFileError
    for metadata that cannot be read, or are gone since the timeline was listed.
    """
    return _with_timeline(store, view).unlisted(store, history_folder)


def list_unlisted(store: Store, history_folder: str, uncounted: Sequence[str]) -> tuple[FileSystemView, list[CommittedFile]]:
    """The table as listed, and what commits name besides. ``uncounted``: paths of files that are in no slice. For any thread;
    raises as ``find_unlisted``.
    """
    view = FileSystemView(read_timeline(store), {}, lambda oldest: archived_completions(store, history_folder, oldest=oldest))
    for folder, files in list_folders(store):
        view.add_files(folder, files)
    for path in uncounted:
        folder, _, name = path.rpartition("/")
        view.remove_files(folder, [name])
    compared = _with_timeline(store, view)
    view.note_replaced(compared.replaced)
    return view, compared.unlisted(store, history_folder)


def expect_committed(view: FileSystemView, unlisted: Sequence[CommittedFile]) -> None:
    """Adds to the view what it lacks of newest slices, so that a plan pins it (rule W6). Reads nothing."""
    lost: list[CommittedFile] = []
    if unlisted:
        compared = _Compared(view, lambda _: True)
        for each in unlisted:
            compared.expect(each)
        lost = compared.lost()
    view.expect((each.partition, each.name, each.size) for each in lost)


def _named_in(instant: str, completion: str, commit: CommitMetadata) -> Iterator[CommittedFile]:
    ours = commit.digests()
    for file in commit.written():
        if file.path in ours:
            partition, _, name = file.path.rpartition("/")
            yield CommittedFile(instant, completion, partition, name, file.size)


def _with_timeline(store: Store, view: FileSystemView) -> _Compared:
    compared = _Compared(view, lambda _: True)
    compared.take_timeline(store, content_of)
    return compared


class LostFiles:
    """Of one table. ``history_folder``: see ``Layout``."""

    def __init__(self, store: Store, history_folder: str) -> None:
        self._store = store
        self._history = history_folder

    def check(self, view: FileSystemView, is_about: Callable[[str], bool], since: str = "") -> None:
        """Raises MissingFileError for a file that a commit of ours put into the newest slice of a group, and that is not there.

        Reads the metadata of all commits, of the history one file at a time; decoding takes some 0.2 ms for each commit and 0.02
        for each file. ``is_about``: whether a partition is of interest. ``since``: archived instants before it were compared
        earlier. Files of other programs are not missed: these have more ways to take one out of a table than we read of.
        Raises CorruptFileError for metadata that cannot be read; MissingFileError, too, for a commit that is gone from the
        timeline since it was listed, and is not in the history.
        """
        compared = _Compared(view, is_about)
        vanished = compared.take_timeline(self._store, _content_if_there)
        # Behind the timeline: what has been archived since it was listed is found here.
        for archived in compared.take_archived(self._store, self._history, since):
            vanished.pop(archived, None)
        if vanished:
            raise MissingFileError(
                f"{min(vanished.values())} vanished while it was read, and the history does not have it",
                fix="Try again: a restore removes commits. If there was none, put the file back from a copy of the table.",
            )
        # A view may hold files that are gone (``FileSystemView.expect``), and one that was gone may be back.
        if lost := [each.path for each in compared.lost() if self._store.size(each.path) is None]:
            others = f", and so are {len(lost) - 1} more files" if len(lost) > 1 else ""
            raise MissingFileError(
                f"{lost[0]} is gone: it is committed, and nothing took it out of the table{others}",
                fix="Put it back from a copy of the table; `headgate verify TABLE` names every such file. Without a copy its "
                "rows are lost: accept that (`headgate table slice readmit TABLE SLICE --accept-loss`), write them again, "
                "compact the table (`headgate compact TABLE`), and do this then.",
            )


def _content_if_there(store: Store, instant: Instant) -> bytes | None:
    try:
        return store.get(instant.path).to_pybytes()
    except FileNotFoundError:
        return None


@dataclass(slots=True)
class _Group:
    """What a view lacks of one file group: base files by instant, logs."""

    bases: dict[str, CommittedFile] = field(default_factory=dict)
    logs: list[CommittedFile] = field(default_factory=list)

    def newest_slice(self) -> list[CommittedFile]:
        """The newest base file, and the logs that lie on it or on one that is there."""
        newest = max(self.bases, default="")
        return [*([self.bases[newest]] if newest else []), *(log for log in self.logs if log.completion >= newest)]


class _Compared:
    """Takes commits in any order."""

    def __init__(self, view: FileSystemView, is_about: Callable[[str], bool]) -> None:
        self._view = view
        self._is_about = is_about
        self.replaced = dict(view.replaced())
        self._bases: Mapping[tuple[str, str], str] = {
            (group.partition, group.file_id): max(group.bases) for group in view.groups() if group.bases
        }
        self._until = max((each.completion for each in view.timeline.completed.values()), default="")
        self._lacking: dict[tuple[str, str], _Group] = {}

    def take_timeline(self, store: Store, read: Callable[[Store, Instant], bytes | None]) -> dict[str, str]:
        """What the timeline's writes say. ``read``: an instant's metadata, None for one that is not there any more. Returns the
        paths of those by instant.
        """
        vanished: dict[str, str] = {}
        writes, workers = self._view.timeline.writes(), Workers(1 if store.stages else _READS)
        for start in range(0, len(writes), _READS):
            some = writes[start : start + _READS]
            for instant, content in zip(some, workers.map(lambda each: read(store, each), some), strict=True):
                if content is None:
                    vanished[instant.time] = instant.path
                else:
                    self.take(instant.time, instant.completion, decode_commit(content, instant.path))
        return vanished

    def take(self, instant: str, completion: str, commit: CommitMetadata) -> None:
        """What one commit says."""
        if completion > self._until:
            return  # it is younger than the view
        for partition, file_ids in commit.replaced.items():
            self.replaced.update({(partition, file_id): instant for file_id in file_ids})
        for each in _named_in(instant, completion, commit):
            if self._is_about(each.partition):
                self.expect(each)

    def take_archived(self, store: Store, history_folder: str, since: str = "") -> Iterator[str]:
        """What the history says; gives its instants from ``since`` on, one after the other."""
        for each in archived_contents(store, history_folder, since=since):
            if each.action in WRITE_ACTIONS:
                commit = decode_commit(each.content, f"{TIMELINE_FOLDER}/{history_folder}")
                self.take(each.instant, each.completion, commit)
            yield each.instant

    def expect(self, file: CommittedFile) -> None:
        """One that a commit names."""
        parsed = parse_log_name(file.name) or parse_base_name(file.name)
        if parsed is None or self._is_listed(file, parsed.file_id):
            return
        key = file.partition, parsed.file_id
        began = file.completion if isinstance(parsed, LogName) else parsed.instant
        if key in self.replaced or began < self._bases.get(key, ""):
            return
        group = self._lacking.setdefault(key, _Group())
        if isinstance(parsed, LogName):
            group.logs.append(file)
        else:
            group.bases[parsed.instant] = file

    def _is_listed(self, file: CommittedFile, file_id: str) -> bool:
        view = self._view
        return view.holds(file.partition, file_id, file.name) and not view.expects(file.partition, file.name)

    def unlisted(self, store: Store, history_folder: str) -> list[CommittedFile]:
        """``lost``, once the timeline is taken; takes the history if the view lacks some of it."""
        left = read_aged(store)
        if left is not None and left != AgedFiles.of(self._view, left.until, self.replaced):
            for _ in self.take_archived(store, history_folder):
                pass
        return self.lost()

    def lost(self) -> list[CommittedFile]:
        """What was not listed of newest slices."""
        return [file for key, group in sorted(self._lacking.items()) if key not in self.replaced for file in group.newest_slice()]
