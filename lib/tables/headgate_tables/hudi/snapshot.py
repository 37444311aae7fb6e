"""The table as of now: timeline, view and schema together, kept current as cheaply as the news allows."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.definition import Layout
from headgate_tables.hudi.schema.avro_to_arrow import arrow_schema
from headgate_tables.hudi.schema.meta_columns import without_meta
from headgate_tables.hudi.timeline.active import Timeline, read_timeline
from headgate_tables.hudi.timeline.commit_metadata import CommitMetadata, decode_commit
from headgate_tables.hudi.timeline.history import archived_completions
from headgate_tables.hudi.timeline.instant import Instant, State
from headgate_tables.hudi.view import FileSystemView, list_folders
from headgate_tables.storage.store import Store


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a scan works on. ``schema``: the table's columns without meta columns."""

    view: FileSystemView
    schema: pa.Schema


class Snapshots:
    """Makes the newest snapshot of one table."""

    def __init__(self, store: Store, layout: Layout, schema: pa.Schema | None, decided: Callable[[], Iterable[str]]) -> None:
        """``schema``: the table's own when it is known without asking the commits. ``decided``: paths of data files that
        slots name; a listing alone could not tell that one of them is missing.
        """
        self._store = store
        self._layout = layout
        self._fixed_schema = schema
        self._decided = decided
        self._current: Snapshot | None = None

    def current(self) -> Snapshot:
        """Lists the timeline, and the folders only when something else than delta commits has happened since the last call."""
        timeline = read_timeline(self._store)
        known = self._current
        if known is None or not self._advance(known.view, timeline):
            known = Snapshot(self._list(timeline), self._schema(timeline))
        elif self._fixed_schema is None:
            known = Snapshot(known.view, self._schema(timeline))
        self._current = known
        return known

    def take_in(self, instant: str, completion: str, names: Mapping[str, Mapping[str, int]]) -> None:
        """A commit of this process: names and sizes of its files by partition. Lists nothing."""
        known, self._current = self._current, None
        if known is None:
            return
        known.view.timeline.add([Instant(instant, "deltacommit", State.COMPLETED, completion)])
        for partition, files in names.items():
            known.view.add_files(partition, files)
        self._current = known

    def _advance(self, view: FileSystemView, timeline: Timeline) -> bool:
        """Brings the view up to ``timeline`` by the metadata of new delta commits; False when that is not all that happened."""
        before, after = view.timeline.completed, timeline.completed
        if before.keys() - after.keys() or (after and timeline.start < view.timeline.start and before):
            return False
        news = [after[time] for time in after.keys() - before.keys()]
        if any(instant.action != "deltacommit" for instant in news):
            return False
        metadata = [(instant, self._metadata(instant)) for instant in news]
        # Forgotten until it is whole again: an interrupt must not leave a view that knows a commit, but not its files.
        self._current = None
        view.timeline.add(news)
        for _, commit in metadata:
            for partition, stats in commit.stats.items():
                view.add_files(partition, {stat["path"].rpartition("/")[2]: stat["fileSizeInBytes"] for stat in stats})
        return True

    def _list(self, timeline: Timeline) -> FileSystemView:
        replaced: dict[tuple[str, str], str] = {}
        for instant in timeline.writes():
            if instant.action == "replacecommit":
                for partition, file_ids in self._metadata(instant).replaced.items():
                    replaced.update({(partition, file_id): instant.time for file_id in file_ids})
        view = FileSystemView(timeline, replaced, lambda: archived_completions(self._store, self._layout.history_folder))
        for folder, files in list_folders(self._store):
            view.add_files(folder, files)
        for path in self._decided():
            folder, _, name = path.rpartition("/")
            view.add_files(folder, [name])
        return view

    def _schema(self, timeline: Timeline) -> pa.Schema:
        """From the newest commit that has one (interop fact 3b); no columns before the first commit."""
        if self._fixed_schema is not None:
            return self._fixed_schema
        for instant in reversed(timeline.writes()):
            text = self._metadata(instant).extra.get("schema")
            if text:
                return without_meta(arrow_schema(text, instant.path))
        return pa.schema([])

    def _metadata(self, instant: Instant) -> CommitMetadata:
        try:
            return decode_commit(self._store.get(instant.path).to_pybytes(), instant.path)
        except FileNotFoundError as error:
            raise CorruptFileError(
                f"{instant.path} vanished while it was read", fix="Read again; an archiver may have moved it."
            ) from error
