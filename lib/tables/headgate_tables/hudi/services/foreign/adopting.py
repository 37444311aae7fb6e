"""Makes what another program did to a table the table's own (rule F1): fences, wins ADOPT, deletes what that gives up.

After an interruption it is called again: until the ADOPT slot is won the table stays read-only for us, and from then on a
takeover does the rest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.fields import Json
from headgate_tables.commitlog.records import Savepoint
from headgate_tables.commitlog.slot import Slot
from headgate_tables.commitlog.state import LogState
from headgate_tables.commitlog.tail import read_state
from headgate_tables.commitlog.times import MAX_CLOCK_SET_BACK_MS, TIME_DIGITS, format_time, parse_time
from headgate_tables.errors import ClockError, CorruptFileError, ForeignWriterError, MissingFileError, UnsupportedTableError
from headgate_tables.face.results import AdoptResult
from headgate_tables.hudi.bucket_rules import rescales_of
from headgate_tables.hudi.decisions.adoption import Adopt
from headgate_tables.hudi.definition import Definition, Layout
from headgate_tables.hudi.definition_values import encode_groups, encode_schema
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.past import kept_since
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse, render
from headgate_tables.hudi.readable import check_all
from headgate_tables.hudi.schema.evolved import evolved
from headgate_tables.hudi.services.foreign import work as foreign_work
from headgate_tables.hudi.services.foreign.found_groups import groups_by_bucket, how_to_undo
from headgate_tables.hudi.services.foreign.sampled_keys import sample
from headgate_tables.hudi.services.foreign.work import ForeignChanges, ListedTable
from headgate_tables.hudi.services.savepoints import savepoint_files
from headgate_tables.hudi.snapshot import Snapshot, Snapshots
from headgate_tables.hudi.table_properties import TIMEZONE_KEY
from headgate_tables.hudi.timeline.active import content_of
from headgate_tables.hudi.timeline.clean_metadata import Cleaned, decode_clean, decode_clean_plan
from headgate_tables.hudi.timeline.commit_metadata import decode_commit
from headgate_tables.hudi.timeline.history import archived_metadata
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER, WRITE_ACTIONS, Instant, State
from headgate_tables.hudi.versions import TableVersion
from headgate_tables.storage.store import Store
from headgate_tables.system import Clock


@dataclass(frozen=True, slots=True)
class Adoption:
    """What an ADOPT slot will say. ``newest``: the largest time on the timeline; ``rolled_back``: pending instants to remove."""

    foreign: ForeignChanges
    newest: str
    plans: Mapping[str, Sequence[Json]]
    rolled_back: Sequence[str]
    body: Adopt
    snapshot: Snapshot

    @property
    def result(self) -> AdoptResult:
        """What ``adopt`` returns."""
        foreign = self.foreign
        return AdoptResult(
            completed=tuple(sorted(foreign.completed)),
            removed=tuple(sorted(foreign.removed)),
            plans=tuple(sorted(self.plans)),
            finished_plans=tuple(sorted(foreign.finished)),
            rolled_back=tuple(self.rolled_back),
            archived=tuple(sorted(foreign.archived)),
            savepoints=tuple(sorted(foreign.saved)),
        )


def adopt(log: CommitLog, clock: Clock, layout: Layout, definition: Definition, *, roll_back: bool) -> AdoptResult:
    """Fences, wins the ADOPT slot and deletes what it gives up; does nothing when no other program has written.

    A pending write of another program is refused, or rolled back with ``roll_back``. Raises ForeignWriterError for one, and
    what ``survey`` raises, all before anything is written; then as ``Table.own``.
    """
    store = log.store
    state = log.state if log.owned else read_state(store, LOG_LAYOUT)[0]
    found = survey(store, layout, definition, state, read_state(store, LOG_LAYOUT, folds=False)[1], roll_back=roll_back)
    if not found.foreign and is_utc(store):
        return found.result
    check_clock(clock, found.newest)
    log.fence()
    log.dead_names.delete_given_up()
    # The properties first: from the next instant on, every program counts in the time zone of our instants.
    set_utc(store)
    definition = Definition.decode(log.state.config)
    found = survey(store, layout, definition, log.state, read_state(store, LOG_LAYOUT, folds=False)[1], roll_back=roll_back)
    log.adopt(found.newest, found.body)
    log.dead_names.delete_given_up()
    return found.result


def survey(
    store: Store, layout: Layout, definition: Definition, state: LogState, slots: Sequence[Slot], *, roll_back: bool
) -> Adoption:
    """Reads only. ``slots``: all that are left, folded or not.

    Raises ForeignWriterError, UnsupportedTableError, CorruptFileError, MissingFileError.
    """
    listed = foreign_work.list_table(store, layout, state)
    foreign = foreign_work.find_changes(listed, state, [slot for slot in slots if slot.n > state.folded])
    _check_rescales(definition, foreign)
    compactions = [each for each in foreign.pending if each.action == "compaction"]
    writes = [each for each in foreign.pending if each.action != "compaction"]
    _check_pending(store, listed, writes, roll_back=roll_back)
    late = _late_outputs(store, layout, foreign, state)
    snapshot = _snapshot(store, layout, listed, [path for paths in late.values() for path in paths])
    check_all(snapshot.view)
    groups = groups_by_bucket(definition, snapshot.view)
    schema = evolved(definition.schema, snapshot.schema) if _has_writes(foreign) else definition.schema
    _check_rows(store, definition, listed, foreign)
    gone = {each.time for each in writes}
    ours_dead = {*foreign.removed, *state.dead, *state.gone} - listed.timeline.completed.keys() - listed.archive.keys()
    plans = {each.time: [op.encode() for op in foreign_work.pin_plan(store, each, listed)] for each in compactions}
    names = [
        *foreign_work.not_to_be_published(
            foreign, listed, slots, snapshot.view, lambda: foreign_work.archived_replacements(store, layout)
        ),
        *(path for time in foreign.unsaved for path in savepoint_files(time, state.savepoints[time])),
        *foreign_work.data_files_of(listed, gone | ours_dead),
        *(path for path in foreign_work.data_files_of(listed, {each.time for each in compactions}) if path.endswith(".parquet")),
        *(path for paths in late.values() for path in paths if listed.has(path)),
        *_pending_names(store, writes, compactions),
    ]
    dead = {time: foreign_work.data_files_of(listed, {time}) for time in gone}
    dead |= {time: paths for time, paths in late.items() if time in foreign.removed}
    body = Adopt(
        completed={time: each.completion for time, each in foreign.completed.items()},
        removed=sorted({*foreign.removed, *(time for time in foreign.archived if time > listed.timeline.start)} - dead.keys()),
        dead=dead,
        plans=plans,
        refused={time: paths for time, paths in late.items() if time in foreign.finished},
        savepoints={time: _savepoint(each, listed, state) for time, each in foreign.saved.items()},
        unsaved=sorted(foreign.unsaved),
        archived=max((time for time in listed.archive if time < listed.timeline.start), default=""),
        cleaned=max((kept_since(each, listed.timeline) for each in _cleanings(store, foreign)), default=""),
        config={"groups": encode_groups(groups), "schema": encode_schema(schema), **_changed_version(store, definition)},
        names=list(dict.fromkeys(names)),
    )
    return Adoption(foreign, listed.newest, plans, sorted(gone), body, snapshot)


def _changed_version(store: Store, definition: Definition) -> dict[str, Json]:
    """Hudi's ordinary writes upgrade a table."""
    version = TableVersion.from_properties(_properties(store), PROPERTIES_PATH)
    return {} if version is definition.table_version else {"table_version": version.value}


def _late_outputs(store: Store, layout: Layout, foreign: ForeignChanges, state: LogState) -> dict[str, list[str]]:
    """Outputs that compactors of ours have made, or may still make, of plans that others finished or undid, by plan: a second
    base file beside theirs would make the table unreadable (rule FI3).
    """
    late = foreign_work.plan_outputs(state, {*foreign.finished, *foreign.removed})
    contents = {time: content_of(store, foreign.completed[time]) for time in late if time in foreign.completed}
    contents |= archived_metadata(store, layout.history_folder, [time for time in foreign.archived if time in late])
    commits = [decode_commit(content, f"the metadata of {time}") for time, content in contents.items()]
    theirs = {file.path for each in commits for file in each.written()}
    return {time: [path for path in paths if path not in theirs] for time, paths in late.items()}


def _snapshot(store: Store, layout: Layout, listed: ListedTable, without: Sequence[str]) -> Snapshot:
    """As others left the table, without slots. ``without``: what compactors of ours may have made beside the files of others."""
    files = {folder: dict(names) for folder, names in listed.files.items()}
    for path in without:
        folder, _, name = path.rpartition("/")
        files.get(folder, {}).pop(name, None)
    return Snapshots(store, layout, None, lambda _: ()).of_folders(files.items())


def _has_writes(foreign: ForeignChanges) -> bool:
    return any(each.action in WRITE_ACTIONS for each in foreign.completed.values())


def _check_pending(store: Store, listed: ListedTable, writes: Sequence[Instant], *, roll_back: bool) -> None:
    if writes and not roll_back:
        names = ", ".join(each.name for each in writes)
        raise ForeignWriterError(
            f"another program has begun {names} and not finished",
            fix="Let it finish, or make sure that it has stopped for good and adopt with roll_back=True.",
        )
    for each in writes:
        # A write that is only requested has not changed anything.
        if each.action in foreign_work.UNDOING and each.state is State.INFLIGHT:
            halfway = [time for time in foreign_work.targets(store, each) if time in listed.timeline.completed]
            if halfway:
                raise ForeignWriterError(
                    f"{each.name} may have deleted some files of {halfway[0]}, which is completed",
                    fix="Finish it with the program that began it; it cannot be rolled back.",
                )


def _check_rescales(definition: Definition, foreign: ForeignChanges) -> None:
    """Raises UnsupportedTableError when a rescale was undone: rows lie by the number of before, which nothing says any more (rule
    FI6).
    """
    undone = rescales_of(definition) & {*foreign.removed}
    if undone:
        raise UnsupportedTableError(
            f"{min(undone)}, which gave the table its number of buckets, was undone: rows lie by the number of before",
            fix=f"Put {min(undone)}'s files back into {TIMELINE_FOLDER} from a copy if they were only lost. Otherwise load the "
            "table's rows into a new one (`headgate bootstrap`).",
        )


def _check_rows(store: Store, definition: Definition, listed: ListedTable, foreign: ForeignChanges) -> None:
    """Checks that the other program puts rows into the buckets where we look for them."""
    writes = {time for time, each in foreign.completed.items() if each.action in WRITE_ACTIONS and each.action != "commit"}
    sampled = sample(store, definition, foreign_work.data_files_of(listed, writes))
    if not sampled.fits(sampled.counts):
        raise UnsupportedTableError(
            f"the other program did not write with {_numbers(definition)} buckets, so rows lie where nobody looks for them; "
            f"its instants are {', '.join(sorted(writes))}",
            fix=how_to_undo(definition),
        )


def _numbers(definition: Definition) -> str:
    """In words."""
    rules = [f"{buckets} in {pattern}" for pattern, buckets, _ in definition.bucket_rules]
    return ", ".join([*rules, f"{definition.buckets} elsewhere" if rules else str(definition.buckets)])


def _pending_names(store: Store, writes: Sequence[Instant], compactions: Sequence[Instant]) -> Iterator[str]:
    """Timeline files and markers of what never completed."""
    for each in writes:
        yield from (Instant(each.time, each.action, state).path for state in (State.INFLIGHT, State.REQUESTED))
    for each in (*writes, *compactions):
        yield from _below(store, f".hoodie/.temp/{each.time}")
    for each in compactions:
        # Empty like ours: otherwise the completing slot would find another content under its name.
        if each.state is State.INFLIGHT and store.size(each.path):
            yield each.path


def _below(store: Store, folder: str) -> Iterator[str]:
    listing = store.list_folder(folder)
    yield from (f"{folder}/{name}" for name in listing.files)
    for name in listing.folders:
        yield from _below(store, f"{folder}/{name}")


def _savepoint(instant: Instant, listed: ListedTable, state: LogState) -> Savepoint:
    """The offsets of the saved commit are known if nothing of ours came later; otherwise clients send everything again."""
    point = listed.timeline.completion(instant.time) or listed.archive.get(instant.time, instant.time)
    moved = any(completion > point for completion in state.commits.values())
    channels = {name: record._replace(offset=0) if moved else record for name, record in state.channels.items()}
    return Savepoint(instant.completion, point, channels)


def _cleanings(store: Store, foreign: ForeignChanges) -> Iterator[Cleaned]:
    for each in foreign.completed.values():
        if each.action == "clean":
            yield decode_clean(content_of(store, each), each.path)
    for each in foreign.pending:
        # Some of its files may already be deleted.
        if each.action == "clean" and each.state is State.INFLIGHT:
            path = Instant(each.time, "clean", State.REQUESTED).path
            try:
                yield decode_clean_plan(store.get(path).to_pybytes(), path, each.time)
            except FileNotFoundError as error:
                raise CorruptFileError(
                    f"{each.path} is there, but its plan {path} is not", fix="Restore the plan from a copy of the table."
                ) from error


def check_clock(clock: Clock, newest: str) -> None:
    """Raises ClockError when the timeline is ahead of the clock, for example because its times are of a zone east of UTC."""
    if not newest:
        return
    ahead = parse_time(newest.ljust(TIME_DIGITS, "9")) - clock.now_ms()
    if ahead > MAX_CLOCK_SET_BACK_MS:
        raise ClockError(
            f"the newest time on the timeline is {newest}, but it is {format_time(clock.now_ms())} (UTC) now; "
            "another program counts in a zone east of UTC, or its clock is wrong",
            fix="Stop the other program and adopt the table when UTC has caught up.",
        )


def is_utc(store: Store) -> bool:
    """Whether all programs use UTC for the table's instants."""
    return _properties(store).get(TIMEZONE_KEY, "LOCAL").upper() == "UTC"


def set_utc(store: Store) -> None:
    """Makes all programs use UTC, as our instants do (rule TM3)."""
    properties = _properties(store)
    if properties.get(TIMEZONE_KEY, "LOCAL").upper() != "UTC":
        store.replace(PROPERTIES_PATH, [render(properties | {TIMEZONE_KEY: "UTC"}, "Headgate adopted the table")])


def _properties(store: Store) -> dict[str, str]:
    try:
        return parse(store.get(PROPERTIES_PATH).to_pybytes(), PROPERTIES_PATH)
    except FileNotFoundError as error:
        raise MissingFileError(f"{PROPERTIES_PATH} is gone", fix="Restore it from a copy of the table.") from error
