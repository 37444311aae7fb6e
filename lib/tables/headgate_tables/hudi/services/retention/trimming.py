"""Cleaning and archiving: a slot names what nobody needs any more, then the files are deleted (rules D1 to D4)."""

from headgate_tables.commitlog.records import encode_derived
from headgate_tables.face.results import ArchiveResult, CleanResult
from headgate_tables.hudi.aged_files import AgedFiles, leave_aged
from headgate_tables.hudi.decisions.retention import Archive, Clean
from headgate_tables.hudi.leases import drop_expired_leases, live_leases
from headgate_tables.hudi.services.retention.archiving import choose_archivable, straddling_instants
from headgate_tables.hudi.services.retention.cleaning import Cleanable, choose_dead_files
from headgate_tables.hudi.services.retention.horizon import earliest_retained
from headgate_tables.hudi.services.table_context import TableContext
from headgate_tables.hudi.timeline.active import content_of, list_instants
from headgate_tables.hudi.timeline.clean_metadata import Cleaned, encode_clean, encode_clean_plan
from headgate_tables.hudi.timeline.history import append_history, obsolete_history
from headgate_tables.hudi.timeline.history_files import Archived
from headgate_tables.hudi.timeline.instant import Instant, State

ARCHIVED_AT_ONCE = 500
"""Instants of one step of maintenance, since checkpoints wait for it: a savepoint that is removed may have held tens of thousands
back. Each costs two reads and about three deletes."""


def clean(table: TableContext, *, plan_only: bool) -> CleanResult:
    """Wins one CLEAN slot, then deletes its files. Decides nothing when there is nothing to delete."""
    table.log.dead_names.delete_given_up()
    drop_expired_leases(table.store, table.clock.now_ms())
    chosen = _choose_dead(table)
    earliest = chosen.earliest.completion if chosen.earliest else ""
    if plan_only or not chosen.files:
        return CleanResult("", tuple(chosen.paths), chosen.bytes, earliest, chosen.kept)
    table.check()
    instant = _win_clean(table, chosen, earliest)
    table.log.dead_names.delete_decided()
    view = table.view()
    for partition, paths in chosen.files.items():
        view.remove_files(partition, [path.rpartition("/")[2] for path in paths])
    return CleanResult(instant, tuple(chosen.paths), chosen.bytes, earliest, chosen.kept)


def _choose_dead(table: TableContext) -> Cleanable:
    view, state = table.view(), table.log.state
    now = table.clock.now_ms()
    return choose_dead_files(
        view.groups(),
        view.timeline.writes(),
        table.settings,
        now=now,
        completion_of=view.completion_of,
        replaced=[(group, view.completion_of(instant) or instant) for group, instant in view.replaced_groups()],
        unfinished=table.log.open_instants,
        savepoints=[saved.point for saved in state.savepoints.values()],
        leases=live_leases(table.store, now),
        plans=table.plans.values(),
        cleaned=state.cleaned,
    )


def _win_clean(table: TableContext, chosen: Cleanable, earliest: str) -> str:
    started = table.log.next_time()
    writes = table.view().timeline.writes()
    cleaned = Cleaned(
        instant=started,
        policy=table.settings.clean_policy,
        earliest=chosen.earliest.time if chosen.earliest else "",
        last_completed=writes[-1].time if writes else "",
        files={partition: [path.rpartition("/")[2] for path in paths] for partition, paths in chosen.files.items()},
        earliest_action=chosen.earliest.action if chosen.earliest else "",
    )

    def body(time: str) -> Clean:
        derived = [
            (Instant(started, "clean", State.REQUESTED).path, encode_clean_plan(cleaned, table.store.url)),
            (Instant(started, "clean", State.INFLIGHT).path, b""),
            (Instant(started, "clean", State.COMPLETED, time).path, encode_clean(cleaned)),
        ]
        publish = encode_derived(derived)
        return Clean(instant=started, completion=time, names=chosen.paths, earliest=earliest, publish=publish)

    completion = table.log.decide(body)
    table.snapshots.add_completed(started, completion, {}, "clean")
    return started


def archive(table: TableContext, *, plan_only: bool, forced: bool = True) -> ArchiveResult:
    """Writes the oldest instants to the history, wins an ARCHIVE slot, then deletes their files from the timeline.

    ``forced``: down to hoodie.keep.min.commits even if there are not yet hoodie.keep.max.commits, and all at once.
    """
    table.log.dead_names.delete_given_up()
    chosen = _choose_archivable(table, forced=forced)
    if not forced:
        chosen = chosen[:ARCHIVED_AT_ONCE]
    left = len(table.view().timeline.completed) - len(chosen)
    if plan_only or not chosen:
        return ArchiveResult(tuple(each.time for each in chosen), left, planned_only=plan_only)
    table.check()
    times = {each.time for each in chosen}
    files = [each for each in list_instants(table.store) if each.time in times]
    requested = {each.time: each for each in files if each.state is State.REQUESTED}
    folder = table.layout.history_folder
    with table.log.ending_on_failed_sync():
        append_history(table.store, folder, [_archived(table, each, requested.get(each.time)) for each in chosen])
        leave_aged(table.store, AgedFiles.of(table.view(), chosen[-1].time))
    # Pending states and the oldest instants first: what is left of the timeline is always its newest part, whole.
    names = [each.path for each in sorted(files, key=lambda each: (each.time, each.state is State.COMPLETED))]
    names += obsolete_history(table.store, folder)
    table.log.decide(lambda _: Archive(until=chosen[-1].time, names=names))
    table.log.dead_names.delete_decided()
    table.view().archive_until(chosen[-1].time)
    return ArchiveResult(tuple(each.time for each in chosen), left, planned_only=False)


def _choose_archivable(table: TableContext, *, forced: bool) -> list[Instant]:
    view, state, settings = table.view(), table.log.state, table.settings
    retained = earliest_retained(view.timeline.writes(), settings, now=table.clock.now_ms(), unfinished=table.log.open_instants)
    points = [saved.point for saved in state.savepoints.values()] + live_leases(table.store, table.clock.now_ms())
    straddling = straddling_instants(view.groups(), retained=retained, savepoints=points, completion_of=view.completion_of)
    return choose_archivable(
        table.snapshots.timeline(),
        settings,
        unfinished=state.reserved,
        plans=list(state.plans),
        savepoints=list(state.savepoints),
        straddling=straddling,
        retained=retained,
        dead=table.log.dead_names.unsettled,
        replacing=[instant for _, instant in view.replaced_groups()],
        forced=forced,
    )


def _archived(table: TableContext, done: Instant, requested: Instant | None) -> Archived:
    """The instant with the bytes of its completed file, and of the plan that a service left in its requested file."""
    plan = content_of(table.store, requested) if requested else b""
    metadata = content_of(table.store, done)
    return Archived(done.time, done.completion, done.action, metadata, plan or None)
