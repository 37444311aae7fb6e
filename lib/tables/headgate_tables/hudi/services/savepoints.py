"""Savepoints, and restoring the table to one (rule CH8)."""

from collections.abc import Collection, Mapping

from headgate_tables.commitlog.fields import Json
from headgate_tables.commitlog.records import Channels, Savepoint, encode_derived
from headgate_tables.errors import OptionError, OutcomeUnknownError, RetryLater
from headgate_tables.face.results import RestoreResult
from headgate_tables.hudi.bucket_rules import hashing_path, rescales_of
from headgate_tables.hudi.bulk_loads import REPLACECOMMIT
from headgate_tables.hudi.current_groups import current_groups
from headgate_tables.hudi.decisions.savepoints import Restore, SavepointMade, SavepointRemoved
from headgate_tables.hudi.definition import ABSENT, Definition
from headgate_tables.hudi.definition_values import encode_groups
from headgate_tables.hudi.services.planning.plans import plan_names
from headgate_tables.hudi.services.table_context import TableContext
from headgate_tables.hudi.timeline.active import list_instants
from headgate_tables.hudi.timeline.instant import NEVER, Instant, State
from headgate_tables.hudi.timeline.restore_metadata import encode_restore, encode_restore_plan
from headgate_tables.hudi.timeline.savepoint_metadata import encode_savepoint
from headgate_tables.hudi.view import FileSystemView


def savepoint(table: TableContext, comment: str, user: str) -> str:
    """Saves the newest commit: its files stay, and the table can be restored to it. Returns its instant.

    The slot holds all channel records. Raises OptionError for a table without commits.
    """
    table.check()
    table.log.dead_names.delete_given_up()  # an earlier savepoint of this commit may have left its files
    view = table.view()
    writes = view.timeline.writes()
    if not writes:
        raise OptionError("the table has no commit to save", fix="Write rows first.")
    saved = writes[-1]
    if saved.time in table.log.state.savepoints:
        return saved.time
    files: dict[str, list[str]] = {}
    for part in view.latest_slices():
        files.setdefault(part.partition, []).extend(part.names)

    def body(time: str) -> SavepointMade:
        derived = [
            (Instant(saved.time, "savepoint", State.INFLIGHT).path, b""),
            (
                Instant(saved.time, "savepoint", State.COMPLETED, time).path,
                encode_savepoint(user=user, at_ms=table.clock.now_ms(), comment=comment, files=files),
            ),
        ]
        channels, publish = dict(table.log.state.channels), encode_derived(derived)
        return SavepointMade(saved=saved.time, point=saved.completion, completion=time, channels=channels, publish=publish)

    table.log.decide(body)
    return saved.time


def remove_savepoint(table: TableContext, instant: str) -> None:
    """Removes a savepoint; the next cleaning may delete its files. Raises OptionError for one that is not there."""
    names = savepoint_files(instant, _saved(table, instant))
    table.log.decide(lambda _: SavepointRemoved(removed=instant, names=names))
    table.log.dead_names.delete_decided()


def savepoint_files(instant: str, saved: Savepoint) -> list[str]:
    """Paths of a savepoint's files on the timeline."""
    done = Instant(instant, "savepoint", State.COMPLETED, saved.completion)
    return [done.path, Instant(instant, "savepoint", State.INFLIGHT).path]


def _saved(table: TableContext, instant: str) -> Savepoint:
    savepoints = table.log.state.savepoints
    if instant not in savepoints:
        there = ", ".join(sorted(savepoints)) or "none"
        raise OptionError(f"{instant!r} is not a savepoint of the table", fix=f"Its savepoints are: {there}.")
    return savepoints[instant]


def restore(table: TableContext, instant: str, *, plan_only: bool = False) -> RestoreResult:
    """Takes the table back to a savepoint: removes later commits, their files and later savepoints. Channel offsets go back with
    the rows, incarnations never do (rule CH8). Cancels open compactions; open transactions lapse.

    ``plan_only``: returns what would go and changes nothing. Raises OptionError for an instant without a savepoint,
    OutcomeUnknownError for a restore that is decided and cannot be seen yet.
    """
    saved = _saved(table, instant)
    table.check()
    view, state = table.view(), table.log.state
    writes = [each for each in view.timeline.writes() if each.completion > saved.point]
    later = [time for time, other in state.savepoints.items() if other.point > saved.point]
    plans = table.plans
    data = _files_of(view, {each.time for each in writes})
    names = [each.path for each in reversed(writes)]
    names += [path for time in later for path in savepoint_files(time, state.savepoints[time])]
    names += [path for paths in data.values() for path in paths]
    names += _pending_files(table, {each.time for each in writes})
    names += [path for plan in plans.values() for path in plan_names(plan)]
    undone = [each.time for each in writes]
    names += [hashing_path(each.time) for each in writes if each.action == REPLACECOMMIT]  # which a rescale is
    then = {key: ABSENT[key] if value is None else value for key, value in saved.config.items()}
    _check_rescales(Definition.decode({**state.config, **then}), instant, undone)
    if plan_only:
        return RestoreResult("", instant, tuple(undone), sum(map(len, data.values())), len(plans))
    started = table.log.next_time()
    groups = _groups_at(table, saved.point, then) if any(each.action == REPLACECOMMIT for each in writes) else {}
    config = {**then, **groups} or None

    def body(time: str) -> Restore:
        derived = [
            (Instant(started, "restore", State.REQUESTED).path, encode_restore_plan(instant, writes)),
            (Instant(started, "restore", State.INFLIGHT).path, b""),
            (Instant(started, "restore", State.COMPLETED, time).path, encode_restore(started, writes, data)),
        ]
        return Restore(
            instant=started,
            completion=time,
            to=instant,
            undone=[*undone, *plans, *later],
            outputs={plan.instant: plan_names(plan) for plan in plans.values()},
            names=names,
            channels=restored_channels(state.channels, saved.channels),
            publish=encode_derived(derived),
            config=config,
        )

    table.log.decide(body)
    try:
        table.log.dead_names.delete_given_up()
    except RetryLater as error:
        raise OutcomeUnknownError(
            f"{started} has decided the restore to {instant} for good, but readers may still see what it undoes: {error.message}",
            fix="Do not restore again. Remove the cause; the table's next write or cleaning deletes what is left.",
        ) from error
    return RestoreResult(started, instant, tuple(undone), sum(map(len, data.values())), len(plans))


def _check_rescales(then: Definition, instant: str, undone: Collection[str]) -> None:
    """Raises OptionError when the definition ``then``, behind the restore, has a number of buckets from a rescale that is undone:
    another program has made the savepoint, behind the rescale, and nothing says what the number was before.
    """
    rescales = rescales_of(then) & {*undone}
    if rescales:
        raise OptionError(
            f"{instant} was saved by another program and lies before {min(rescales)}, which gave the table its number of buckets",
            fix="Restore to a later savepoint, or load the table's rows as of then into a new table.",
        )


def _pending_files(table: TableContext, instants: set[str]) -> list[str]:
    """The other files of completed instants, as they are listed: a clustering or a log compaction of another program completes as
    an action of another name.
    """
    found = [each for each in list_instants(table.store) if each.time in instants and each.action != "savepoint"]
    return [each.path for each in found if each.state is not State.COMPLETED]


def restored_channels(now: Channels, saved: Channels) -> Channels:
    """Channel records after a restore: offsets as they were saved, 0 for channels that began later; the greater incarnation."""
    records = {name: record._replace(offset=0) for name, record in now.items()}
    for name, record in saved.items():
        known = now.get(name)
        records[name] = record._replace(incarnation=max(record.incarnation, known.incarnation)) if known else record
    return records


def _groups_at(table: TableContext, point: str, then: Mapping[str, Json]) -> dict[str, Json]:
    """The definition's file groups as of a completion time: those that were replaced later are the buckets' own again. ``then``:
    the definition's keys that were others at that time.
    """
    view, definition = table.view(), Definition.decode({**table.log.state.config, **then})

    def counts(instant: str) -> bool:
        return (view.completion_of(instant) or NEVER) <= point

    live = [(group.partition, group.file_id) for group in view.groups(counts) if group.bases or group.logs]
    return {"groups": encode_groups(current_groups(definition, live, view.replaced(counts)))}


def _files_of(view: FileSystemView, instants: set[str]) -> dict[str, list[str]]:
    """Paths of the data files that these instants wrote, by instant; also into groups that were replaced since."""
    found: dict[str, list[str]] = {}
    for group in (*view.groups(), *(group for group, _ in view.replaced_groups())):
        prefix = f"{group.partition}/" if group.partition else ""
        named = [*group.bases.items(), *((log.instant, log.name) for log in group.logs.values())]
        for time, name in named:
            if time in instants:
                found.setdefault(time, []).append(prefix + name)
    return found
