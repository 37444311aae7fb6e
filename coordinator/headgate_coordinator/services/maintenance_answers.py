"""Results of table services as messages of ``maintenance.proto``."""

from collections.abc import Sequence
from dataclasses import fields

from headgate_coordinator.core.operations import PlanOutcome
from headgate_coordinator.core.stuck_slices import StuckLoad
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_tables.face.operation import Operation, Plan
from headgate_tables.face.reader import TableReader
from headgate_tables.face.results import AdoptResult, ArchiveResult, CleanResult, CompactResult, RestoreResult
from headgate_tables.face.settings import SETTINGS, TableSettings


def planned(plans: Sequence[Plan], compactors: int) -> api.CompactionPlanned:
    """Plans that are open."""
    told = [api.CompactionPlan(instant=plan.instant, operations=map(operation, plan.operations)) for plan in plans]
    return api.CompactionPlanned(plans=told, compactors=compactors)


def would_compact(found: CompactResult, compactors: int) -> api.CompactionPlanned:
    """What a plan would hold; without operations there would be none."""
    plans = [api.CompactionPlan(operations=map(operation, found.planned))] if found.planned else []
    return api.CompactionPlanned(plans=plans, compactors=compactors)


def operation(each: Operation) -> api.CompactionOperation:
    """One slice."""
    return api.CompactionOperation(
        partition=each.partition,
        file_id=each.file_id,
        base_bytes=each.base.size if each.base else 0,
        log_files=len(each.logs),
        log_bytes=sum(log.size for log in each.logs),
    )


def ended(instant: str, outcome: PlanOutcome) -> api.CompactedPlan:
    """A plan that is over."""
    dropped = map(operation, outcome.dropped)
    return api.CompactedPlan(instant=instant, finished=outcome.finished, dropped=dropped, cancelled=outcome.cancelled)


def cleaned(found: CleanResult) -> api.CleanResponse:
    """Names of files stay here: they say nothing that their number does not."""
    return api.CleanResponse(instant=found.instant, files=len(found.files), bytes=found.bytes, earliest=found.earliest)


def archived(found: ArchiveResult) -> api.ArchiveResponse:
    """Done, or with ``plan_only`` to be done."""
    return api.ArchiveResponse(instants=found.instants, left=found.left)


def saved(instant: str, table: TableReader) -> api.SavepointResponse:
    """``instant``: what was saved or removed; and all that there are now."""
    return api.SavepointResponse(instant=instant, savepoints=table.savepoints)


def restored(found: RestoreResult) -> api.RestoreResponse:
    """What is gone."""
    return api.RestoreResponse(instant=found.instant, undone=found.undone, files=found.files, cancelled_plans=found.plans)


def adopted(found: AdoptResult) -> api.AdoptResponse:
    """What is the table's own now."""
    return api.AdoptResponse(**{field.name: getattr(found, field.name) for field in fields(found)})


def stuck(loads: Sequence[StuckLoad]) -> api.SliceResponse:
    """Slices that cannot be compacted, or are set aside."""
    told = [
        api.StuckSlice(
            name=load.stuck.name,
            why=load.stuck.why,
            tries=load.stuck.tries,
            again_ms=load.stuck.again,
            aside=load.stuck.aside,
            log_files=load.files,
            log_bytes=load.bytes,
        )
        for load in loads
    ]
    return api.SliceResponse(slices=told)


def settings(now: TableSettings) -> api.ConfigureResponse:
    """All of them, in the order in which they are explained."""
    values, defaults = now.texts(), TableSettings().texts()
    told = [
        api.Setting(key=each.key, value=values[each.key], default=defaults[each.key], about=each.about)
        for each in SETTINGS.values()
    ]
    return api.ConfigureResponse(settings=told)
