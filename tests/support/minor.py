"""Tables whose compactions are minor ones, and the files that these leave."""

from collections.abc import Mapping
from pathlib import Path

from headgate_tables import hudi
from headgate_tables.face.operation import Operation, OperationResult, Plan
from support.slices import execute

SETTINGS: Mapping[str, str] = {
    "hoodie.compact.inline.max.delta.commits": "3",
    "headgate.compaction.read.amplification": "1000",
    "headgate.compaction.minor.fraction": "100",
}
"""Files of a test are mostly footer, so logs are larger than the base file under them."""


def plan(table: hudi.Table) -> Plan | None:
    """Does what is due; the plan that is open then, if one is."""
    while table.maintain().more:
        pass
    open_plans = list(table.plans.values())
    return open_plans[-1] if open_plans else None


def plan_minor(table: hudi.Table) -> tuple[Plan, Operation]:
    """Does what is due, which has to be a plan of one minor compaction; the plan and its operation."""
    planned = plan(table)
    assert planned is not None
    return planned, only_minor(planned)


def run(table: hudi.Table, planned: Plan, stage: str | None = None) -> list[OperationResult]:
    """Executes all operations of the plan here."""
    return [execute(table, each, planned.instant, stage=stage) for each in planned.operations]


def finish(table: hudi.Table, planned: Plan) -> None:
    """Executes the plan here, and completes it."""
    table.finish_plan(planned.instant, run(table, planned))


def compact(table: hudi.Table) -> Plan:
    """Plans what is due, and completes it."""
    planned = plan(table)
    assert planned is not None
    finish(table, planned)
    return planned


def only_minor(planned: Plan) -> Operation:
    """The operation of a plan of one minor compaction."""
    [operation] = planned.operations
    assert operation.merged_log
    return operation


def sizes(table: hudi.Table) -> dict[str, int]:
    """Bytes of the table's data files on this machine by path."""
    root = Path(table.url.removeprefix("file://"))
    found = (file for file in root.rglob("*") if file.is_file() and ".hoodie" not in file.parts)
    return {str(file.relative_to(root)): file.stat().st_size for file in found if ".hoodie_" not in file.name}
