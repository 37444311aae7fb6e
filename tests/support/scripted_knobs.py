"""What a scripted cluster (``scripted_service``) does wrong."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc

from headgate_proto.api.v1 import errors_pb2 as err
from headgate_proto.api.v1 import ingest_pb2, tables_pb2

Answer = ingest_pb2.AppendResponse
Row = dict[str, Any]


@dataclass
class Knobs:
    """What goes wrong. Each is a thing of the next time only, unless it says otherwise."""

    break_after: list[int] = field(default_factory=list)
    """Numbers of batches; a stream is aborted after so many: one entry a stream, in order."""
    commit_before_break: bool = True
    """Always: whether a broken stream's accepted rows are committed (their acknowledgement is lost) or dropped."""
    mute: int = 0
    """So many streams are never answered."""
    hang: int = 0
    """So many streams are answered no more from their next batch on, while their connections are well."""
    lose_opened: int = 0
    """So many streams are aborted after the channel was opened, before the answer."""
    refuse: Callable[[Row], "err.Code.ValueType | None"] = lambda row: None
    """Always: a batch with a row for which it gives a code is refused with it."""
    stopped: err.Error | None = None
    """Always: no batch is taken, each is refused with it."""
    hold_checkpoints: bool = False
    """Always: rows are received and never committed."""
    commit_every: int = 1
    """Always: a checkpoint has so many batches, unless a flush ends it."""
    ended: list[err.Error] = field(default_factory=list)
    """A stream ends with each of these after its first batch."""
    refuse_open: list[err.Error] = field(default_factory=list)
    """Opens are answered with these."""
    answers: list[Answer] = field(default_factory=list)
    """Lies: sent instead of the true answer to a batch."""
    opened: list[ingest_pb2.Opened] = field(default_factory=list)
    """Lies: sent instead of the true answer to an open."""
    unary: list[err.Error | grpc.StatusCode] = field(default_factory=list)
    """Calls of TableService fail with these; a bare status stands for a lost answer: the call is carried out."""
    token: str | None = None
    """Always: what every call has to bring."""
    evolution: "tables_pb2.Evolution.ValueType" = tables_pb2.EVOLUTION_REFUSE
    """Always: of tables that are created from now on."""
    max_in_flight_bytes: int = 256 * 1024 * 1024
