"""What the services of one table work with: its log, view and settings, as its owner's handle has them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.fields import Json
from headgate_tables.errors import CorruptFileError
from headgate_tables.face.operation import Operation, Plan
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.definition import Definition, Layout, avro_schema
from headgate_tables.hudi.log.names import parse_base_name
from headgate_tables.hudi.lost_files import CommittedFile, expect_committed, find_unlisted
from headgate_tables.hudi.services.stuck import Key, StuckSlice, stuck_slices
from headgate_tables.hudi.snapshot import Snapshots
from headgate_tables.hudi.view import FileSystemView
from headgate_tables.storage.store import Store
from headgate_tables.system import Clock


@dataclass(frozen=True, slots=True)
class TableContext:
    """``stage``: the folder of this process in the present epoch, or "" where files are created in place. ``check`` raises
    when the table may not be written any more (rule F1).
    """

    store: Store
    log: CommitLog
    definition: Definition
    layout: Layout
    snapshots: Snapshots
    clock: Clock
    stage: str
    check: Callable[[], object]

    @property
    def settings(self) -> TableSettings:
        """According to the newest CONFIG slot."""
        return TableSettings.from_texts(self.log.state.settings)

    @property
    def schema(self) -> str:
        """The table's Avro schema without meta columns, as commits carry it."""
        return avro_schema(self.definition, meta_columns=False)

    @property
    def plans(self) -> Mapping[str, Plan]:
        """Open compactions by instant, oldest first."""
        return open_plans(self.log)

    @property
    def stuck(self) -> Mapping[Key, StuckSlice]:
        """Slices that cannot be compacted, or that an operator has set aside."""
        return stuck_slices(self.log.state)

    def view(self) -> FileSystemView:
        """The file slices of this moment. Lists the table the first time; then this process's own commits keep it current.

        It holds every file of a newest slice that a commit on the timeline names, listed or not (rule W6).
        """
        known = self.snapshots.kept or self.snapshots.current()
        for path in self.uncounted:
            folder, _, name = path.rpartition("/")
            known.view.remove_files(folder, [name])
        if not known.view.is_compared:
            expect_committed(known.view, find_unlisted(self.store, self.layout.history_folder, known.view))
        return known.view

    def end_listing(self, listed: FileSystemView, unlisted: Sequence[CommittedFile]) -> None:
        """Makes the view of what ``list_unlisted`` gave on another thread."""
        expect_committed(self.snapshots.end_listing(listed), unlisted)

    @property
    def uncounted(self) -> list[str]:
        """Paths of files that are in no slice: what late compactors may create although the plan was completed without it, which
        is deleted, never compacted; and files whose loss an operator has accepted.
        """
        late = [path for paths in self.log.state.refused.values() for path in paths]
        return late + [f"{each.partition}/{name}".lstrip("/") for each in self.stuck.values() for name in each.without]


def open_plans(log: CommitLog) -> dict[str, Plan]:
    """Plans that are neither done nor cancelled. Raises CorruptFileError."""
    found = sorted(log.state.plans.items())
    return {instant: Plan(instant, tuple(read_operation(each, instant) for each in operations)) for instant, operations in found}


def read_operation(content: Json, instant: str) -> Operation:
    """One of a PLAN slot. Raises CorruptFileError, also for an output that no reader would take for this plan's (rule W4)."""
    operation = Operation.decode(content)
    name = parse_base_name(operation.output)
    if name is None or (name.file_id, name.instant) != (operation.file_id, instant):
        raise CorruptFileError(
            f"the plan of {instant} would write {operation.output!r} for file group {operation.file_id!r}",
            fix="Restore the commit log from a copy of the table.",
        )
    return operation
