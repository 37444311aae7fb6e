"""The life of a compaction plan in the commit log: planned, then done or cancelled (rules TM2, W4, W5). Reads no rows."""

import contextlib
from collections.abc import Collection, Mapping, Sequence

from headgate_tables.commitlog.records import StuckRecord, encode_derived
from headgate_tables.errors import RetryLater, TransactionError
from headgate_tables.face.operation import Operation, OperationResult, Plan
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.aged_files import AgedFiles, is_aged, leave_aged
from headgate_tables.hudi.decisions.plans import MinorPlanMade, PlanCancelled, PlanDone, PlanMade
from headgate_tables.hudi.services.planning.choose import choose_slices, may_be_minor, operation_of
from headgate_tables.hudi.services.planning.urgency import overdue_since
from headgate_tables.hudi.services.stuck import Key, after_plan
from headgate_tables.hudi.services.table_context import TableContext
from headgate_tables.hudi.sweep import drop_staged
from headgate_tables.hudi.timeline.commit_metadata import encode_compaction
from headgate_tables.hudi.timeline.compaction_plan import encode_plan
from headgate_tables.hudi.timeline.instant import Instant, State
from headgate_tables.hudi.view import FileSlice


def choose(table: TableContext, *, forced: bool, also: Collection[Key] = ()) -> list[FileSlice]:
    """The slices that a plan made now would compact, the worst first; none that is set aside.

    A slice that an earlier plan dropped gets a plan of its own, after its rest and when no other is due: a plan is done only
    with its last operation, and other slices must not wait for this one. ``forced``: all at once, and those of ``also``, which
    have no logs.
    """
    now, stuck = table.clock.now_ms(), table.stuck
    busy = {(each.partition, each.file_id) for plan in table.plans.values() for each in plan.operations}
    resting = {key for key, each in stuck.items() if (each.aside if forced else each.rests(now))}

    def chosen(pending: set[tuple[str, str]]) -> list[FileSlice]:
        return choose_slices(
            table.view().latest_slices(),
            table.settings,
            now=now,
            pending=pending,
            unfinished=table.log.open_instants,
            overdue=overdue(table),
            forced=forced,
            also=also,
        )

    if forced:
        return chosen(busy | resting)
    found = chosen(busy | stuck.keys())
    return chosen(busy | resting)[:1] if stuck and not found else found


def overdue(table: TableContext) -> str:
    """The instant before which straddling logs have kept archiving waiting too long."""
    return overdue_since(sorted(table.view().timeline.completed), table.settings)


def plan_compaction(table: TableContext, *, forced: bool = False, also: Collection[Key] = ()) -> Plan | None:
    """Wins a PLAN slot for what is due, or for every slice with logs when ``forced``, and for those of ``also`` without; None
    when there is nothing.

    View and instant belong to one moment, in which no slot is in flight: what completes later has a later completion time
    and lies on the new slice (rule TM2). Raises as ``Table.own``, and OutcomeUnknownError.
    """
    table.check()
    slices = choose(table, forced=forced, also=also)
    return plan_slices(table, slices, minor=not forced) if slices else None


def waits_for_commits(table: TableContext, slices: Sequence[FileSlice]) -> bool:
    """Whether some of these may have a minor compaction as soon as no transaction is open."""
    return bool(table.log.open_instants) and any(may_be_minor(each, table.settings) for each in slices)


def plan_slices(table: TableContext, slices: Sequence[FileSlice], *, minor: bool) -> Plan:
    """Wins a PLAN slot for these, which ``choose`` has just found. ``minor``: where that may be, and no transaction is open.

    A transaction that is open has an instant before the plan's, so its rows would count as older than those of a merged log (rule
    DE5).
    """
    settings = table.settings if minor and not table.log.open_instants else None

    def body(time: str) -> PlanMade:
        plan = Plan(time, operations_of(slices, time, settings))
        requested = Instant(time, "compaction", State.REQUESTED).path
        operations = [each.encode() for each in plan.operations]
        publish = encode_derived([(requested, encode_plan(plan))])
        kind = MinorPlanMade if any(each.merged_log for each in plan.operations) else PlanMade
        return kind(instant=time, operations=operations, publish=publish)

    instant = table.log.decide(body)
    return table.plans[instant]


def operations_of(slices: Sequence[FileSlice], instant: str, settings: TableSettings | None = None) -> tuple[Operation, ...]:
    """The operations of these slices, in the same order. ``settings``: which may be minor ones; None: none may."""
    return tuple(operation_of(each, instant, minor=settings is not None and may_be_minor(each, settings)) for each in slices)


def finish_plan(table: TableContext, instant: str, finished: Sequence[OperationResult], dropped: Mapping[Operation, str]) -> str:
    """Wins the PLAN_DONE slot and returns the completion time. Each operation of the plan is either finished or dropped.

    ``dropped`` says why; the log keeps that until the slice is compacted, see ``stuck``.

    The ``.commit`` names only what was finished; a dropped slice stays as it was. A plan of which nothing was finished is
    cancelled, and the result is "". Raises TransactionError for a plan that is not open, or results that do not cover it.
    """
    plan = table.plans.get(instant)
    if plan is None:
        raise TransactionError(
            f"no compaction of {instant} is open", fix="It was done or cancelled before; ask for the open plans again."
        )
    if sorted([*(each.operation.path for each in finished), *(each.path for each in dropped)]) != sorted(
        each.path for each in plan.operations
    ):
        raise TransactionError(
            f"the results of compaction {instant} are not those of its operations", fix="Name each operation once."
        )
    if not finished:
        cancel_plan(table, instant, dropped)
        return ""
    table.check()
    metadata = encode_compaction(instant, finished, table.schema)

    stuck, freed = _remembered(table, [each.operation for each in finished], dropped)
    _leave_aged(table, [each.operation for each in finished])

    def body(time: str) -> PlanDone:
        derived = [
            (Instant(instant, "compaction", State.INFLIGHT).path, b""),
            (Instant(instant, "commit", State.COMPLETED, time).path, metadata),
        ]
        return PlanDone(
            instant=instant,
            completion=time,
            files=[file for each in finished for file in each.files],
            names=[*(path for each in dropped for path in each.outputs), *(path for each in finished for path in each.left_out)],
            publish=encode_derived(derived),
            stuck=stuck,
            freed=freed,
        )

    completion = table.log.decide(body)
    names: dict[str, dict[str, int]] = {}
    for each in finished:
        sizes = names.setdefault(each.operation.partition, {})
        sizes.update((file.path.rpartition("/")[2], file.size) for file in each.files)
    table.snapshots.add_completed(instant, completion, names, "commit")
    _drop_staged(table, instant)
    return completion


def cancel_plan(table: TableContext, instant: str, dropped: Mapping[Operation, str] | None = None) -> None:
    """Wins a PLAN_CANCELLED slot: the plan can never complete (rule W5); its outputs and its timeline file are swept.

    ``dropped``: operations that failed, and why.
    """
    plan = table.plans.get(instant)
    if plan is None:
        return
    stuck, freed = _remembered(table, (), dropped or {})
    body = PlanCancelled(instant=instant, names=plan_names(plan), stuck=stuck, freed=freed)
    table.log.decide(lambda _: body)
    _drop_staged(table, instant)


def _drop_staged(table: TableContext, instant: str) -> None:
    """Behind the slot that ends a plan, which an error would deny. What is left goes with the stages of this epoch."""
    with contextlib.suppress(RetryLater):
        drop_staged(table.store, table.log, instant)


def _remembered(
    table: TableContext, finished: Sequence[Operation], dropped: Mapping[Operation, str]
) -> tuple[Mapping[str, StuckRecord], Sequence[str]]:
    keys = [(each.partition, each.file_id) for each in finished]
    return after_plan(
        table.stuck, keys, {(each.partition, each.file_id): why for each, why in dropped.items()}, table.clock.now_ms()
    )


def _leave_aged(table: TableContext, compacted: Sequence[Operation]) -> None:
    """As it will be: before the slot, because a plan that is done cannot be tried again. Nothing before the table was listed, for
    which a checkpoint would have to wait: the next owner reads the history then.
    """
    until = table.log.state.archived
    if table.snapshots.kept is not None and any(is_aged(name, until) for each in compacted for name in each.names):
        left = AgedFiles.of(table.view(), until, {(each.partition, each.file_id) for each in compacted})
        with table.log.ending_on_failed_sync():
            leave_aged(table.store, left)


def plan_names(plan: Plan) -> list[str]:
    """Every file that a plan and its operations may have left, data first (rule T7)."""
    states = (State.INFLIGHT, State.REQUESTED)
    return [
        *(path for each in plan.operations for path in each.outputs),
        *(Instant(plan.instant, "compaction", state).path for state in states),
    ]
