"""The table as of now: timeline, view and schema together, updated with as little listing as the new instants allow."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headgate_tables.commitlog.records import DataFile
from headgate_tables.hudi.definition import Layout
from headgate_tables.hudi.past import Past
from headgate_tables.hudi.properties import PROPERTIES_PATH
from headgate_tables.hudi.schema.avro_to_arrow import arrow_schema
from headgate_tables.hudi.schema.evolved import shown
from headgate_tables.hudi.schema.meta_columns import without_meta
from headgate_tables.hudi.timeline.active import Timeline, content_of, read_timeline
from headgate_tables.hudi.timeline.commit_metadata import CommitMetadata, decode_commit
from headgate_tables.hudi.timeline.history import archived_completions
from headgate_tables.hudi.timeline.instant import Instant, State
from headgate_tables.hudi.view import FileSystemView, list_folders
from headgate_tables.storage.store import Store


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a scan reads from. ``schema``: the table's columns without meta columns."""

    view: FileSystemView
    schema: pa.Schema


_TELLING = frozenset(["deltacommit", "commit", "clean"])
"""Actions whose metadata name every file that came or went."""


class Snapshots:
    """Makes the newest snapshot of one table."""

    def __init__(
        self,
        store: Store,
        layout: Layout,
        schema: pa.Schema | None,
        decided: Callable[[str], Iterable[DataFile]],
        is_ours: Callable[[Instant], bool] = lambda _: False,
        checked: Callable[[Timeline, Collection[str]], Timeline] = lambda timeline, _: timeline,
    ) -> None:
        """``schema``: the table's own, when it is known without reading commits. ``decided``: data files in slots, as far as the
        timeline's start allows, because a listing alone cannot show that one of them is missing. ``is_ours``: whether a completed
        instant certainly has the table's own schema; of others the metadata are read. ``checked``: see ``LostInstants.checked``.
        """
        self._store = store
        self._layout = layout
        self._fixed_schema = schema
        self._decided = decided
        self._is_ours = is_ours
        self._checked = checked
        self._schemas: dict[str, str] = {}
        self.past = Past(store, layout)
        self._current: Snapshot | None = None
        self._is_kept = False
        self._missed: list[tuple[Instant, Mapping[str, Mapping[str, int]]]] | None = None

    @property
    def kept(self) -> Snapshot | None:
        """The snapshot that ``add_completed`` keeps current for the table's owner without listing. None before any listing."""
        return self._current if self._is_kept else None

    def stop_keeping(self) -> None:
        """To be called when the table has just become ours: others may have written since the last call of ``current``."""
        self._is_kept = False

    def current(self) -> Snapshot:
        """Lists the timeline, and the folders only if anything but delta commits has happened since the last call."""
        known = self._current
        timeline = self.timeline()
        return self._keep(self._followed(known.view if known is not None else None, timeline), timeline)

    def timeline(self) -> Timeline:
        """Lists it. Raises MissingFileError for an instant that slots know and that was deleted."""
        seen = self._current.view.timeline.completed if self._current is not None else ()
        return self._checked(read_timeline(self._store), seen)

    def add_completed(
        self, instant: str, completion: str, names: Mapping[str, Mapping[str, int]], action: str = "deltacommit"
    ) -> None:
        """Adds what this process has completed: names and sizes of new files by partition. Lists nothing."""
        done = Instant(instant, action, State.COMPLETED, completion)
        if self._missed is not None:
            self._missed.append((done, names))
        known, self._current = self._current, None
        if known is None:
            return
        _add(known.view, done, names)
        self._current = known

    def lacks(self, decided: Mapping[str, object]) -> bool:
        """Whether the snapshot that is kept has not all of these completed instants (the keys): an error or an interrupt came
        between a slot and ``add_completed``.
        """
        kept = self.kept
        return kept is not None and not kept.view.timeline.completed.keys() >= decided.keys()

    def forget(self) -> None:
        """Makes the next call list again, because the view may be wrong."""
        self._current = None

    def begin_listing(self) -> None:
        """From now on ``add_completed`` also notes what a listing that begins now may miss."""
        self._missed = []

    def end_listing(self, view: FileSystemView) -> FileSystemView:
        """Makes the snapshot of a view that another thread has made, and of what was noted since. Lists again only if more has
        happened than ``current`` could follow. Returns the snapshot's view.
        """
        timeline = self.timeline()
        for done, names in self._missed or ():
            _add(view, done, names)
        self.give_up_listing()
        return self._keep(self._with_decided(self._followed(view, timeline)), timeline).view

    def give_up_listing(self) -> None:
        """``add_completed`` notes nothing more for a listing: nobody waits for it."""
        self._missed = None

    def of_folders(self, folders: Iterable[tuple[str, Mapping[str, int]]]) -> Snapshot:
        """Makes a snapshot from what ``list_folders`` gave before."""
        timeline = self.timeline()
        return Snapshot(self._view(timeline, folders), self._schema(timeline))

    def _followed(self, view: FileSystemView | None, timeline: Timeline) -> FileSystemView:
        """The view as of ``timeline``; a new one, listed, if there is none, or new instants do not name every change."""
        return view if view is not None and self._advance(view, timeline) else self._list(timeline)

    def _keep(self, view: FileSystemView, timeline: Timeline) -> Snapshot:
        known = Snapshot(view, self._schema(timeline))
        self._current, self._is_kept = known, True
        return known

    def _advance(self, view: FileSystemView, timeline: Timeline) -> bool:
        """Brings the view up to ``timeline`` by the metadata of new instants; False when these do not name every change."""
        news = new_instants(view.timeline, timeline)
        if news is None:
            return False
        commits = [self.metadata(instant) for instant in news if instant.action != "clean"]
        cleaned = [self.past.cleaned(instant) for instant in news if instant.action == "clean"]
        # Forgotten until it is complete again: an interrupt must not leave a view that knows a commit, but not its files.
        self._current = None
        view.follow(timeline)
        for commit in commits:
            for partition, files in commit.files.items():
                view.add_files(partition, {file.name: file.size for file in files})
        for clean in cleaned:
            for partition, names in clean.files.items():
                view.remove_files(partition, names)
        return True

    def _list(self, timeline: Timeline) -> FileSystemView:
        return self._view(timeline, list_folders(self._store))

    def _view(self, timeline: Timeline, folders: Iterable[tuple[str, Mapping[str, int]]]) -> FileSystemView:
        replaced: dict[tuple[str, str], str] = {}
        for instant in timeline.writes():
            if instant.action == "replacecommit":
                for partition, file_ids in self.metadata(instant).replaced.items():
                    replaced.update({(partition, file_id): instant.time for file_id in file_ids})
        view = FileSystemView(timeline, replaced, self._archived)
        for folder, files in folders:
            view.add_files(folder, files)
        return self._with_decided(view)

    def _with_decided(self, view: FileSystemView) -> FileSystemView:
        for file in self._decided(view.timeline.start):
            folder, _, name = file.path.rpartition("/")
            view.add_files(folder, {name: file.size})
        return view

    def _archived(self, oldest: str) -> Mapping[str, str]:
        return archived_completions(self._store, self._layout.history_folder, oldest=oldest)

    def _schema(self, timeline: Timeline) -> pa.Schema:
        """Our own with what others have added; or that of the newest commit that has one (fact HF6); or the one that the table
        was created with.
        """
        if self._fixed_schema is not None:
            return self._with_additions(self._fixed_schema, timeline)
        for instant in reversed(timeline.writes()):
            text = self.metadata(instant).extra.get("schema")
            if text:
                return self._shown(arrow_schema(text, instant.path))
        created = self._layout.created_schema
        return self._shown(arrow_schema(created, PROPERTIES_PATH)) if created else pa.schema([])

    def _with_additions(self, schema: pa.Schema, timeline: Timeline) -> pa.Schema:
        """Of others' commits only the newest counts; the additions of earlier ones are known from following the timeline."""
        others = {instant.time: instant.path for instant in timeline.writes() if not self._is_ours(instant)}
        self._schemas = {time: text for time, text in self._schemas.items() if time in others}
        newest = next(reversed(others), "")
        if newest and newest not in self._schemas:
            self.metadata(timeline.completed[newest])
        paths = {text: others[time] for time, text in self._schemas.items() if text}
        for text, path in paths.items():
            schema = shown(schema, without_meta(arrow_schema(text, path)))
        return schema

    def _shown(self, stored: pa.Schema) -> pa.Schema:
        fields = without_meta(stored)
        for at, field in enumerate(fields):
            if field.name in self._layout.shown_as_text and pa.types.is_integer(field.type):
                fields = fields.set(at, field.with_type(pa.string()))
        return fields

    def metadata(self, instant: Instant) -> CommitMetadata:
        """What a completed write says of its files. Raises CorruptFileError."""
        found = decode_commit(content_of(self._store, instant), instant.path)
        if self._fixed_schema is not None and not self._is_ours(instant):
            self._schemas[instant.time] = found.extra.get("schema", "")
        return found


def new_instants(before: Timeline, after: Timeline) -> list[Instant] | None:
    """Completed instants that are new, if their own metadata name every change of the table's files; else None.

    Only instants before the timeline's new start may be missing: those were archived. One that was known must still be there,
    and none of the missing may have been pending: it may have completed and been archived unseen.
    """
    gone = before.completed.keys() - after.completed.keys()
    unseen = before.pending.keys() - after.completed.keys() - after.pending.keys()
    if before.completed and (gone == before.completed.keys() or after.start < before.start):
        return None
    if any(time >= after.start for time in gone) or any(time < after.start for time in unseen):
        return None
    news = [instant for time, instant in after.completed.items() if time not in before.completed]
    return news if all(instant.action in _TELLING for instant in news) else None


def _add(view: FileSystemView, done: Instant, names: Mapping[str, Mapping[str, int]]) -> None:
    view.timeline.add([done])
    for partition, files in names.items():
        view.add_files(partition, files)
