"""The state of the cluster as one coordinator sees it: the result of ``hg.status()``."""

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from google.protobuf.message import Message

from headgate_proto.api.v1 import tables_pb2 as wire

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class CoordinatorStatus:
    """A coordinator that is alive."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class WriterStatus:
    """A writer; ``uncommitted_bytes`` are Arrow bytes of all tables."""

    process: str
    address: str
    leaving: bool
    uncommitted_bytes: int


@dataclass(frozen=True, slots=True)
class CompactorStatus:
    """A compactor. ``free``: operations that it would take now; ``running``: operations of this coordinator's tables."""

    process: str
    host: str
    leaving: bool
    free: int
    running: int


@dataclass(frozen=True, slots=True)
class OperationStatus:
    """A compaction operation that runs now: one file slice. ``bytes_done`` of ``of_bytes`` input bytes are read."""

    partition: str
    file_id: str
    compactor: str
    host: str
    attempt: int
    rows_done: int
    bytes_done: int
    of_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table. ``state``: owned, elsewhere, quarantined or unowned; ``last_commit_ms``: since the epoch, 0 = never.

    ``checkpoint_seconds`` is the time of the last checkpoint from barrier to published; ``checkpoint_files`` and
    ``checkpoint_bytes`` count the data files that it wrote. ``rows_per_second`` became queryable over the last minute, or the
    last checkpoint if it took longer. ``waiting_seconds``: how long the oldest rows wait that readers do not see yet; 0: none.
    ``lag``: of the channel with the most, see ``ChannelSummary``. All three are 0 from coordinators of before these fields.
    """

    name: str
    state: str
    owner: str
    epoch: int
    generation: int
    checkpoint: int
    channels: int
    uncommitted_bytes: int
    last_instant: str
    last_commit_ms: int
    checkpoint_seconds: float
    checkpoint_files: int
    checkpoint_bytes: int
    alarms: tuple[str, ...]
    operations: tuple[OperationStatus, ...]
    operations_queued: int
    rows_per_second: float = 0.0
    waiting_seconds: float = 0.0
    lag: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """The cluster as one coordinator knows it, and the tables that it owns. ``alarms``: of the coordinator itself."""

    coordinator: str
    redis_reachable: bool
    coordinators: tuple[CoordinatorStatus, ...]
    writers: tuple[WriterStatus, ...]
    compactors: tuple[CompactorStatus, ...]
    tables: tuple[TableStatus, ...]
    alarms: tuple[str, ...] = ()

    @classmethod
    def from_wire(cls, answer: wire.StatusResponse) -> "Status":
        """The status in a coordinator's answer."""
        return cls(
            coordinator=answer.coordinator,
            redis_reachable=answer.redis_reachable,
            coordinators=tuple(_part(CoordinatorStatus, part) for part in answer.coordinators),
            writers=tuple(_part(WriterStatus, part) for part in answer.writers),
            compactors=tuple(_part(CompactorStatus, part) for part in answer.compactors),
            tables=tuple(_part(TableStatus, part) for part in answer.tables),
            alarms=tuple(answer.alarms),
        )


def _part(kind: type[Part], message: Message) -> Part:
    values: dict[str, Any] = {field.name: getattr(message, field.name) for field in fields(kind)}  # type: ignore[arg-type]
    if "alarms" in values:
        values["alarms"] = tuple(values["alarms"])
    if "operations" in values:
        values["operations"] = tuple(_part(OperationStatus, each) for each in values["operations"])
    return kind(**values)
