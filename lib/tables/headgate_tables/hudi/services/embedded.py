"""Compaction without a cluster: plan, run each operation here, finish."""

from collections.abc import Callable, Collection

from headgate_tables.errors import CorruptFileError, MissingFileError, UnsupportedTableError
from headgate_tables.face.operation import Operation, OperationResult, Plan
from headgate_tables.face.results import CompactResult
from headgate_tables.hudi.services.compaction.execution import compact_slice
from headgate_tables.hudi.services.planning.plans import choose, finish_plan, operations_of, plan_compaction
from headgate_tables.hudi.services.stuck import Key
from headgate_tables.hudi.services.table_context import TableContext

Progress = Callable[[Operation, int], None]
"""Gets an operation, and how many of its rows are done."""


def compact(table: TableContext, *, plan_only: bool, progress: Progress | None, also: Collection[Key] = ()) -> CompactResult:
    """Compacts every slice that has logs, and those of ``also``; if a plan is open already, that is completed and nothing else.

    ``plan_only``: returns what would be done and changes nothing. An operation that fails for good is dropped and named in the
    result; an error of the store ends the call, and the next one continues with the same plan.
    """
    if plan_only:
        pending = [each for plan in table.plans.values() for each in plan.operations]
        return CompactResult("", "", tuple(pending or operations_of(choose(table, forced=True, also=also), "")), (), {})
    plans = list(table.plans.values())
    if not plans:
        made = plan_compaction(table, forced=True, also=also)
        plans = [made] if made else []
    result = CompactResult("", "", (), (), {})
    for plan in plans:
        result = _run(table, plan, progress)
    return result


def _run(table: TableContext, plan: Plan, progress: Progress | None) -> CompactResult:
    finished: list[OperationResult] = []
    dropped: dict[Operation, str] = {}
    for each in plan.operations:
        outcome = _attempt(table, plan.instant, each, progress)
        if isinstance(outcome, OperationResult):
            finished.append(outcome)
        else:
            dropped[each] = outcome
    completion = finish_plan(table, plan.instant, finished, dropped)
    return CompactResult(plan.instant, completion, plan.operations, finished, dropped)


def _attempt(table: TableContext, instant: str, each: Operation, progress: Progress | None) -> OperationResult | str:
    """The finished operation, or why it failed as often as ``headgate.compaction.attempts`` allows."""

    def done(rows: int) -> None:
        if progress is not None:
            progress(each, rows)

    why = ""
    for _ in range(table.settings.compaction_attempts):
        try:
            with table.log.ending_on_failed_sync():
                return compact_slice(
                    table.store,
                    table.definition,
                    table.layout,
                    each,
                    instant,
                    stage=table.stage,
                    settings=table.settings,
                    progress=done,
                )
        except (CorruptFileError, MissingFileError, UnsupportedTableError) as error:
            why = str(error)
    return why
