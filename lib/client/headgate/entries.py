"""What waits in a channel and what is said about it."""

import enum
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from headgate_proto.api.v1 import errors_pb2 as wire

Level = Literal["received", "durable", "queryable"]
"""How safe rows are: in one writer's memory; the commit is decided on the table's storage; readers see them."""


class Acks(NamedTuple):
    """Offsets up to which rows have reached each level. ``received`` falls back when a stream breaks."""

    received: int = 0
    durable: int = 0
    queryable: int = 0


class Cut(NamedTuple):
    """Rows that travel together: a call's, or a part of them, as a record batch message. ``size`` counts against the limit."""

    rows: int
    size: int
    content: bytes
    mergeable: bool


class Piece(NamedTuple):
    """A cut that was taken; ``offset`` is that of its last row."""

    offset: int
    size: int
    content: bytes


@dataclass(slots=True, eq=False)
class Entry:
    """One message, or (without pieces) a skip to ``offset``. ``kind`` is what merged pieces share: operation and schema."""

    after: int
    kind: Any
    pieces: list[Piece]
    offset: int
    mergeable: bool = False

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)


class Ask(enum.Enum):
    """Messages without rows."""

    FLUSH = "flush"
    CLOSE = "close"


class Pause(NamedTuple):
    """Nothing is sent for so many seconds: the writer takes no rows of the table just now."""

    seconds: float


class Refusal(NamedTuple):
    """The entry that stands in the way, and why. ``rows``: which of them are to blame, a bit each; empty: nobody said."""

    entry: Entry
    error: wire.Error
    rows: bytes = b""
