"""Translates between the wire and the pure core: reports of writers into events, instructions into orders."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from headgate_coordinator.core import events, instructions
from headgate_coordinator.core.tally import Tally
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import compaction_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1.table_pb2 import TableDefinition
from headgate_runtime.definitions import definition_message
from headgate_runtime.errors import UnknownMessageError, wire_error
from headgate_tables.face.definition import Definition
from headgate_tables.face.files import WriteStat, WriteStatus
from headgate_tables.face.log import DataFile
from headgate_tables.face.operation import Operation, PinnedFile

RETRY_STOPPED_MS = 1000
"""How long a client waits before it sends a batch to a stopped table again. Each attempt costs one batch on the network."""

MOST_TALLIES = 4096
"""Others that one report may name: each costs the owner's event loop a look at every member."""


@dataclass(frozen=True, slots=True)
class OrderTarget:
    """The table that orders are about, under one ownership. ``restored``: the instant of the newest restore, or empty."""

    table: str
    epoch: int
    url: str
    definition: TableDefinition
    restored: str = ""

    @classmethod
    def of(cls, name: str, epoch: int, url: str, definition: Definition, *, restored: str = "") -> "OrderTarget":
        """Makes a target from the library's definition."""
        return cls(name, epoch, url, definition_message(definition), restored)


def event_of(process: str, report: wire.TableReport) -> events.OfGeneration | events.NewerOwnerSeen:
    """Returns the event for a report of the writer ``process``. Raises UnknownMessageError."""
    generation = report.generation
    match report.WhichOneof("message"):
        case "ask_instant":
            return events.InstantAsked(process, generation, report.ask_instant.checkpoint)
        case "barrier_passed":
            passed = report.barrier_passed
            handed = _tallies(passed.handed)
            return events.BarrierPassed(process, generation, passed.checkpoint, dict(passed.offsets), passed.bytes, handed)
        case "flushed":
            return _flushed(process, generation, report.flushed)
        case "broken":
            return events.Broken(process, generation, report.broken.why, report.broken.own_error)
        case "progress":
            return events.Progressed(process, generation, report.progress.checkpoint)
        case "waits_for_room":
            return events.WaitsForRoom(process, generation, report.waits_for_room.checkpoint)
        case "checkpoint_full":
            return events.CheckpointFull(process, generation, report.checkpoint_full.checkpoint)
        case "newer_owner":
            return events.NewerOwnerSeen(process, report.newer_owner.epoch)
        case "ask_checkpoint":
            return events.CheckpointAsked(process, generation)
        case "open":
            asked = report.open
            return events.OpenRequested(
                process, generation, asked.request, asked.channel, asked.incarnation, asked.principal, asked.channels
            )
        case "channel_ended":
            ended = report.channel_ended
            return events.ChannelEnded(process, generation, ended.channel, ended.hold, ended.uncommitted)
        case None:
            raise UnknownMessageError("a report of a writer about a table")


def _flushed(process: str, generation: int, flushed: wire.Flushed) -> events.Flushed:
    return events.Flushed(
        process,
        generation,
        flushed.checkpoint,
        [write_status(file) for file in flushed.files],
        dict(flushed.key_group_bytes),
        _tallies(flushed.received),
        written=sum(file.rows + file.deletes for file in flushed.files),
        beaten=flushed.beaten,
    )


def _tallies(tallies: Sequence[wire.Tally]) -> dict[str, Tally]:
    if len(tallies) > MOST_TALLIES:
        raise UnknownMessageError("a report of a writer about more others than a cluster has")
    return {tally.process: Tally(tally.rows, tally.checksum) for tally in tallies}


def write_status(file: wire.FileStatus) -> WriteStatus:
    """Returns a data file in the library's type."""
    stat = WriteStat(file.file_id, file.partition, file.name, file.size, file.rows, file.deletes, file.log_version)
    return WriteStatus(stat, DataFile(stat.path, file.size, file.sha256, file.stage))


def order_of(to: OrderTarget, generation: int, order: instructions.Order, block_format: str = "") -> wire.TableOrder:
    """Returns the message of an order. ``block_format``: the table's setting, for the checkpoint that an order may begin."""
    message = wire.TableOrder(table=to.table, epoch=to.epoch, generation=generation)
    match order:
        case instructions.Attach(membership):
            begun = _membership(membership, block_format)
            message.attach.CopyFrom(wire.Attach(membership=begun, url=to.url, definition=to.definition, restored=to.restored))
        case instructions.Barrier(number, following):
            message.barrier.CopyFrom(wire.Barrier(checkpoint=number, next=_membership(following, block_format)))
        case instructions.UseInstant(number, instant):
            message.instant.CopyFrom(wire.Instant(checkpoint=number, instant=instant))
        case instructions.Decided(number, queryable):
            level = wire.LEVEL_QUERYABLE if queryable else wire.LEVEL_DURABLE
            message.decided.CopyFrom(wire.Decided(checkpoint=number, level=level))
        case instructions.Grant(request, channel, incarnation, offset, hold):
            message.grant.CopyFrom(
                wire.Grant(request=request, channel=channel, incarnation=incarnation, committed_offset=offset, hold=hold)
            )
        case instructions.OpenRefused(request, refusal):
            message.open_refused.CopyFrom(wire.OpenRefused(request=request, error=_error(refusal)))
        case instructions.EndChannel(channel, hold, refusal):
            message.end_channel.CopyFrom(wire.EndChannel(channel=channel, hold=hold, error=_error(refusal)))
        case instructions.Detach(refusal):
            message.detach.CopyFrom(wire.Detach(error=_error(refusal) if refusal else None))
        case instructions.Throttle():
            message.throttle.CopyFrom(_throttle(order))
        case instructions.RefuseSlices(slices):
            refused = [wire.RefusedSlice(partition=s.partition, bucket=s.bucket, why=_error(s.refusal)) for s in slices]
            message.refuse_slices.CopyFrom(wire.RefuseSlices(slices=refused))
        case _:
            assert_never(order)
    return message


def _throttle(throttle: instructions.Throttle) -> wire.Throttle:
    why = throttle.stopped
    if why is None:
        return wire.Throttle(bytes_per_second=throttle.rate, paused=throttle.paused)
    error = wire_error(errors_pb2.Code.Value(why.code), why.message, why.fix, retry_after_ms=RETRY_STOPPED_MS)
    return wire.Throttle(stopped=True, why=error)


def refused(report: wire.TableReport, error: errors_pb2.Error) -> wire.TableOrder:
    """Returns the answer to an open of a table that is not served here, with the epoch and generation of the writer's report."""
    answer = wire.OpenRefused(request=report.open.request, error=error)
    return wire.TableOrder(table=report.table, epoch=report.epoch, generation=report.generation, open_refused=answer)


def _membership(membership: instructions.Membership, block_format: str) -> wire.Membership:
    members: Sequence[wire.Member] = [wire.Member(process=process, address=address) for process, address in membership.members]
    share = membership.share
    return wire.Membership(
        checkpoint=membership.checkpoint,
        members=members,
        assignment=membership.assignment,
        slice_files=share.files,
        slice_bytes=share.nbytes,
        intake_bytes=membership.intake_bytes,
        block_format=block_format,
    )


def _error(refusal: instructions.Refusal) -> errors_pb2.Error:
    return wire_error(errors_pb2.Code.Value(refusal.code), refusal.message, refusal.fix)


def operation_message(operation: Operation) -> compaction_pb2.CompactionOperation:
    """Returns the message of an operation."""
    return compaction_pb2.CompactionOperation(
        partition=operation.partition,
        file_id=operation.file_id,
        base=_pinned(operation.base) if operation.base is not None else None,
        logs=map(_pinned, operation.logs),
        output=operation.output,
        merged_log=operation.merged_log or None,
    )


def _pinned(file: PinnedFile) -> compaction_pb2.PinnedFile:
    return compaction_pb2.PinnedFile(name=file.name, size=file.size)
