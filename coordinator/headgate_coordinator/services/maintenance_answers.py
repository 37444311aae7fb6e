"""Results of table services as messages of ``maintenance.proto``."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Final

from headgate_coordinator.core.operations import PlanOutcome
from headgate_coordinator.core.stuck_slices import StuckLoad
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_runtime.descriptions import describe
from headgate_tables.catalog import FormerTable
from headgate_tables.face.altering import AlterResult
from headgate_tables.face.log import parse_time
from headgate_tables.face.operation import Operation, Plan
from headgate_tables.face.owner import Ownership, Table
from headgate_tables.face.reader import TableReader
from headgate_tables.face.results import AdoptResult, ArchiveResult, CleanResult, CompactResult, DropResult, RestoreResult
from headgate_tables.face.settings import SETTINGS, TableSettings

_PAGE: Final = 1000
"""Channels in one answer, as the contract says. With names of 255 bytes and principals of 128 that is 0.4 MB."""


def planned(plans: Sequence[Plan], compactors: int) -> api.CompactionPlanned:
    """Answers with open plans. ``compactors``: how many are connected."""
    opened = [api.CompactionPlan(instant=plan.instant, operations=map(operation, plan.operations)) for plan in plans]
    return api.CompactionPlanned(plans=opened, compactors=compactors)


def would_compact(found: CompactResult, compactors: int) -> api.CompactionPlanned:
    """Answers with the plan that a compaction would make; no plan if it would have no operations."""
    plans = [api.CompactionPlan(operations=map(operation, found.planned))] if found.planned else []
    return api.CompactionPlanned(plans=plans, compactors=compactors)


def operation(each: Operation) -> api.CompactionOperation:
    """Describes one operation."""
    return api.CompactionOperation(
        partition=each.partition,
        file_id=each.file_id,
        base_bytes=each.base.size if each.base else 0,
        log_files=len(each.logs),
        log_bytes=sum(log.size for log in each.logs),
    )


def ended(instant: str, outcome: PlanOutcome) -> api.CompactedPlan:
    """Describes the outcome of a plan."""
    dropped = map(operation, outcome.dropped)
    return api.CompactedPlan(instant=instant, finished=outcome.finished, dropped=dropped, cancelled=outcome.cancelled)


def altered(table: Table, found: AlterResult) -> api.AlterResponse:
    """Answers with what has changed or would, and the table with these columns."""
    described = None
    if table.definition is not None:
        described = describe(table.name, table.url, table.definition, table.format_version, table.settings.evolve)
        described.schema = found.schema.serialize().to_pybytes()
    return api.AlterResponse(
        instant=found.instant, added=found.added, widened=found.widened, nullable=found.nullable, table=described
    )


def cleaned(found: CleanResult) -> api.CleanResponse:
    """Answers with the number of files, without their names."""
    return api.CleanResponse(instant=found.instant, files=len(found.files), bytes=found.bytes, earliest=found.earliest)


def archived(found: ArchiveResult) -> api.ArchiveResponse:
    """Answers with instants that were archived, or with ``plan_only`` would be."""
    return api.ArchiveResponse(instants=found.instants, left=found.left)


def saved(instant: str, table: TableReader) -> api.SavepointResponse:
    """Answers with all savepoints of the table. ``instant``: the one that was saved or removed, or empty."""
    details = [api.SavepointDetails(**asdict(each)) for each in table.describe_savepoints()]
    return api.SavepointResponse(instant=instant, savepoints=[each.instant for each in details], details=details)


def dropped(done: DropResult) -> api.DropResponse:
    """Answers with a drop, or with what one would do."""
    return api.DropResponse(
        dropped_ms=parse_time(done.time) if done.time else 0,
        principal=done.by,
        files=done.files,
        bytes=done.bytes,
        left=done.left,
        left_count=done.left_count,
        until_ms=done.until,
    )


def dropped_before(found: FormerTable) -> api.DropResponse:
    """Answers with a drop that was done before, and of which no more is known."""
    return api.DropResponse(dropped_ms=parse_time(found.drop.time), principal=found.drop.by)


def restored(found: RestoreResult) -> api.RestoreResponse:
    """Answers with what a restore removed."""
    return api.RestoreResponse(instant=found.instant, undone=found.undone, files=found.files, cancelled_plans=found.plans)


def adopted(found: AdoptResult) -> api.AdoptResponse:
    """Answers with what an adoption changed."""
    return api.AdoptResponse(**{field.name: getattr(found, field.name) for field in fields(found)})


def stuck(loads: Sequence[StuckLoad]) -> api.SliceResponse:
    """Answers with slices that cannot be compacted, or are set aside."""
    slices = [
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
    return api.SliceResponse(slices=slices)


def channels(table: Ownership, prefix: str, after: str, lags: Mapping[str, int]) -> api.ListChannelsResponse:
    """Answers with a page of channels: those whose names begin with ``prefix`` and come behind ``after``. ``lags``: by
    channel.
    """
    found = table.channels
    names = heapq.nsmallest(_PAGE + 1, (name for name in found if name.startswith(prefix) and name > after))
    page = [
        api.ChannelSummary(
            name=name,
            committed_offset=found[name].offset,
            incarnation=found[name].incarnation,
            principal=found[name].principal,
            last_used_ms=found[name].time,
            lag=lags.get(name, 0),
        )
        for name in names[:_PAGE]
    ]
    return api.ListChannelsResponse(channels=page, more=len(names) > _PAGE)


def settings(now: TableSettings) -> api.ConfigureResponse:
    """Answers with all settings of a table, in the order of their documentation."""
    values, defaults = now.to_texts(), TableSettings().to_texts()
    rows = [
        api.Setting(key=each.key, value=values[each.key], default=defaults[each.key], about=each.about)
        for each in SETTINGS.values()
    ]
    return api.ConfigureResponse(settings=rows)
