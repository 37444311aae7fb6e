"""What another program did to a table, worked out from its files and slots (rule F1). Reads only."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate_tables.commitlog.fields import Fields, list_of, text, texts
from headgate_tables.commitlog.publish import derived_files, given_up
from headgate_tables.commitlog.records import DataFile
from headgate_tables.commitlog.slot import Slot
from headgate_tables.commitlog.state import LogState
from headgate_tables.errors import CorruptFileError, MissingFileError
from headgate_tables.face.operation import Operation
from headgate_tables.hudi.base_file import WRITE_TOKEN
from headgate_tables.hudi.decisions.savepoints import SavepointMade
from headgate_tables.hudi.definition import Layout
from headgate_tables.hudi.log.names import BaseName, LogName, base_name, parse_base_name, parse_log_name
from headgate_tables.hudi.timeline.active import Timeline, content_of, list_instants
from headgate_tables.hudi.timeline.avro_container import decode
from headgate_tables.hudi.timeline.commit_metadata import decode_commit
from headgate_tables.hudi.timeline.compaction_plan import decode_plan
from headgate_tables.hudi.timeline.history import archived_completions, archived_contents
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER, Instant, State, parse_instant
from headgate_tables.hudi.view import FileSystemView, list_folders
from headgate_tables.storage.store import Store

UNDOING = ("rollback", "restore")


@dataclass(frozen=True, slots=True)
class ListedTable:
    """The files of a table. ``files``: sizes by name, by folder; ``archive``: completion times of archived instants; ``undone``:
    instants that rollbacks and restores of others took off the timeline.
    """

    timeline: Timeline
    files: Mapping[str, Mapping[str, int]]
    archive: Mapping[str, str]
    undone: Collection[str]

    @property
    def newest(self) -> str:
        """The largest time on the timeline."""
        timeline = self.timeline
        instants = [*timeline.completed.values(), *timeline.pending.values(), *timeline.savepoints.values()]
        return max((max(each.time, each.completion) for each in instants), default="")

    def data(self) -> Iterator[tuple[str, str, BaseName | LogName]]:
        """Folder, name and parsed name of every base and log file."""
        for folder, names in self.files.items():
            for name in names:
                parsed = parse_log_name(name) or parse_base_name(name)
                if parsed is not None:
                    yield folder, name, parsed

    def has(self, path: str) -> bool:
        """Whether a data file lies there."""
        folder, _, name = path.rpartition("/")
        return name in self.files.get(folder, {})


def list_table(store: Store, layout: Layout, state: LogState) -> ListedTable:
    """Lists everything. Raises CorruptFileError."""
    timeline = Timeline()
    timeline.add(list_instants(store))
    files = {folder: dict(sizes) for folder, sizes in list_folders(store)}
    archive = archived_completions(store, layout.history_folder)
    foreign = [each for each in timeline.completed.values() if each.action in UNDOING and not _is_ours(each, state)]
    undone = frozenset(time for each in foreign for time in _undone_by(store, each))
    return ListedTable(timeline, files, archive, undone)


def _undone_by(store: Store, instant: Instant) -> list[str]:
    data = content_of(store, instant)
    if instant.action == "rollback":
        return decode(
            data, instant.path, ["HoodieRollbackMetadata"], lambda fields: list(fields.required("commitsRollback", texts))
        )
    return decode(
        data, instant.path, ["HoodieRestoreMetadata"], lambda fields: list(fields.required("instantsToRollback", texts))
    )


def targets(store: Store, instant: Instant) -> list[str]:
    """Instants that a pending rollback or restore is about to take off the timeline. Raises CorruptFileError."""
    path = Instant(instant.time, instant.action, State.REQUESTED).path
    try:
        data = store.get(path).to_pybytes()
    except FileNotFoundError:
        return []
    if instant.action == "rollback":
        return decode(data, path, ["HoodieRollbackPlan"], lambda plan: [plan.required("instantToRollback", _read_time)])
    return decode(data, path, ["HoodieRestorePlan"], lambda plan: plan.required("instantsToRollback", list_of(_read_time)))


def _read_time(value: object) -> str:
    return Fields(value).required("commitTime", text)


def _is_ours(instant: Instant, state: LogState) -> bool:
    return state.has_completed(instant.time, instant.action, instant.completion)


@dataclass(frozen=True, slots=True)
class ForeignChanges:
    """What others did to instants. ``finished``: plans of ours that they completed; ``removed``: instants and plans of
    ours that they undid; ``archived``: ours that they archived; ``pending``: theirs that never completed, oldest first.
    ``saved``, ``unsaved``: savepoints made and removed.
    """

    completed: Mapping[str, Instant]
    finished: Collection[str]
    removed: Collection[str]
    archived: Collection[str]
    pending: Sequence[Instant]
    saved: Mapping[str, Instant]
    unsaved: Collection[str]

    def __bool__(self) -> bool:
        """Whether others did anything."""
        return any(len(getattr(self, name)) for name in self.__dataclass_fields__)


def find_changes(listed: ListedTable, state: LogState, unfolded: Sequence[Slot]) -> ForeignChanges:
    """Compares the table with what the slots decided.

    A won slot that is not published yet looks like one that another program undid. It counts as unpublished when it is not
    folded (a fold is written when all is published, rule G1), no rollback names it, and nothing later was archived.
    """
    timeline, start = listed.timeline, listed.timeline.start
    unpublished = {slot.instant for slot in unfolded}
    saved_now = {slot.body.saved for slot in unfolded if isinstance(slot.body, SavepointMade)}

    def undone(time: str) -> bool:
        return time < start or time in listed.undone or time not in unpublished or not _has_inputs(state, time, listed)

    missing = [time for time in state.commits if time not in timeline.completed]
    missing += [time for time in state.plans if time not in timeline.completed and time not in timeline.pending]
    archived = {time for time in missing if time in listed.archive}
    removed = {time for time in missing if time not in archived and undone(time)}
    completed = {each.time: each for each in timeline.completed.values() if not _is_ours(each, state)}
    saved = {time: each for time, each in timeline.savepoints.items() if each.completion and not _is_ours(each, state)}
    unsaved = {
        time
        for time in state.savepoints
        if time not in timeline.savepoints and (time not in saved_now or time in archived or time in removed)
    }
    pending = sorted(
        (each for each in timeline.pending.values() if not state.has_reserved(each.time)), key=lambda each: each.time
    )
    finished = {time for time in state.plans if time in completed or time in archived}
    return ForeignChanges(completed, finished, removed, archived, pending, saved, unsaved)


def _has_inputs(state: LogState, plan: str, listed: ListedTable) -> bool:
    """Whether a plan of ours could still be executed; True for what is no plan."""
    operations = [Operation.decode(each) for each in state.plans.get(plan, ())]
    return all(listed.has(each.at(pin.name)) for each in operations for pin in ([each.base] if each.base else []) + [*each.logs])


def plan_outputs(state: LogState, plans: Collection[str]) -> dict[str, list[str]]:
    """The fixed names that compactors of ours may give, or have given, the outputs of these plans, by plan."""
    open_plans = {time: map(Operation.decode, state.plans[time]) for time in plans if time in state.plans}
    return {time: [path for each in operations for path in each.outputs] for time, operations in open_plans.items()}


def data_files_of(listed: ListedTable, instants: Collection[str]) -> list[str]:
    """Paths of the data files that carry these instants."""
    return [_path(folder, name) for folder, name, parsed in listed.data() if parsed.instant in instants]


def not_to_be_published(
    foreign: ForeignChanges,
    listed: ListedTable,
    slots: Sequence[Slot],
    view: FileSystemView,
    replaced: Callable[[], Collection[tuple[str, str]]],
) -> list[str]:
    """Names in our slots that must not be published again: archived, undone, completed by others, or cleaned. ``replaced``: reads
    the partitions and ids of file groups that archived instants have replaced.

    Raises MissingFileError for a file of ours that is gone although the table needs it.
    """
    dead, over = given_up(slots), {*foreign.archived, *foreign.removed}
    bases = {(group.partition, group.file_id): max(group.bases, default="") for group in view.groups()}
    names: list[str] = []
    needed: list[DataFile] = []
    for slot in slots:
        instant = slot.instant
        names += [path for path, _ in derived_files(slot) if _is_over(path, foreign, over)]
        published = instant in listed.timeline.completed or instant in foreign.archived
        for file in slot.files:
            if file.path in dead:
                continue
            if instant in foreign.removed or instant in foreign.completed:
                names.append(file.path)
            elif published and not listed.has(file.path):
                names.append(file.path)
                if _is_needed(file, view, bases):
                    needed.append(file)
    _check_replaced(needed, replaced)
    return names


def _is_over(path: str, foreign: ForeignChanges, over: Collection[str]) -> bool:
    if not path.startswith(f"{TIMELINE_FOLDER}/"):
        return False
    derived = parse_instant(path.rpartition("/")[2])
    if derived is None:
        return False
    completed_twice = derived.time in foreign.completed and derived.state is State.COMPLETED and derived.action != "savepoint"
    return derived.time in over or completed_twice


def _is_needed(file: DataFile, view: FileSystemView, bases: Mapping[tuple[str, str], str]) -> bool:
    """A cleaner removes what a newer slice has replaced, and replaced groups, but never files of the newest slice."""
    folder, _, name = file.path.rpartition("/")
    log = parse_log_name(name)
    parsed = log or parse_base_name(name)
    if parsed is None or view.was_replaced(folder, parsed.file_id):
        return False
    since = view.completion_of(parsed.instant) or parsed.instant if log else parsed.instant
    return since >= bases.get((folder, parsed.file_id), "")


def _check_replaced(needed: Sequence[DataFile], replaced: Callable[[], Collection[tuple[str, str]]]) -> None:
    """Raises MissingFileError unless archived instants have replaced the groups of all these files, which are not there."""
    gone = replaced() if needed else ()
    for file in needed:
        folder, _, name = file.path.rpartition("/")
        parsed = parse_log_name(name) or parse_base_name(name)
        if parsed is None or (folder, parsed.file_id) not in gone:
            raise MissingFileError(
                f"{file.path} is committed and part of the newest file slice, but not there",
                fix="Another program has deleted it. Restore it from a copy of the table, then adopt again.",
            )


def archived_replacements(store: Store, layout: Layout) -> set[tuple[str, str]]:
    """Partitions and ids of the file groups that archived instants have replaced: reads the whole history."""
    return {
        (partition, file_id)
        for each in archived_contents(store, layout.history_folder)
        if each.action == "replacecommit"
        for partition, ids in decode_commit(each.content, f"{TIMELINE_FOLDER}/{layout.history_folder}").replaced.items()
        for file_id in ids
    }


def pin_plan(store: Store, instant: Instant, listed: ListedTable) -> list[Operation]:
    """A pending compaction of another program, as operations of ours. Raises CorruptFileError, MissingFileError."""
    path = Instant(instant.time, "compaction", State.REQUESTED).path
    try:
        slices = decode_plan(store.get(path).to_pybytes(), path)
    except FileNotFoundError as error:
        raise CorruptFileError(
            f"{instant.path} is there, but its plan {path} is not",
            fix="Restore the plan from a copy of the table, or delete both.",
        ) from error
    operations: list[Operation] = []
    for each in slices:
        try:
            sizes = listed.files.get(each.partition, {})
            operations.append(each.pin(sizes, base_name(each.file_id, WRITE_TOKEN, instant.time)))
        except KeyError as error:
            raise MissingFileError(
                f"{path} names {error.args[0]} in {each.partition!r}, which is not there",
                fix="Restore the file from a copy of the table, or delete the plan with the program that made it.",
            ) from error
    return operations


def _path(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
