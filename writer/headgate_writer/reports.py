"""The reports of a writer to the owner of a table: a closed union, and the message that carries them."""

from typing import TypeAlias, assert_never

from headgate_proto.cluster.v1 import coordination_pb2 as wire

Report: TypeAlias = (
    wire.AskInstant
    | wire.BarrierPassed
    | wire.Flushed
    | wire.Broken
    | wire.AskCheckpoint
    | wire.CheckpointFull
    | wire.Progress
    | wire.WaitsForRoom
    | wire.OpenRequest
    | wire.ChannelEnded
)
"""One report about one table."""


def set_report(message: wire.TableReport, report: Report) -> None:
    """Puts the report into the field of its kind."""
    match report:
        case wire.AskInstant():
            message.ask_instant.CopyFrom(report)
        case wire.BarrierPassed():
            message.barrier_passed.CopyFrom(report)
        case wire.Flushed():
            message.flushed.CopyFrom(report)
        case wire.Broken():
            message.broken.CopyFrom(report)
        case wire.AskCheckpoint():
            message.ask_checkpoint.CopyFrom(report)
        case wire.CheckpointFull():
            message.checkpoint_full.CopyFrom(report)
        case wire.Progress():
            message.progress.CopyFrom(report)
        case wire.WaitsForRoom():
            message.waits_for_room.CopyFrom(report)
        case wire.OpenRequest():
            message.open.CopyFrom(report)
        case wire.ChannelEnded():
            message.channel_ended.CopyFrom(report)
        case _:
            assert_never(report)
