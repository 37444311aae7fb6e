"""What a channel's queue holds, and the refusals of it."""

import enum
from dataclasses import dataclass
from typing import NamedTuple

from headgate.rows import RowFormat
from headgate_proto.api.v1 import errors_pb2 as wire


class EncodedRows(NamedTuple):
    """All or some rows of a call as one record batch message. ``size`` counts against the channel's limit."""

    rows: int
    size: int
    content: bytes
    mergeable: bool


class Piece(NamedTuple):
    """Encoded rows in the queue; ``offset`` is that of the last row."""

    offset: int
    size: int
    content: bytes


@dataclass(slots=True, eq=False)
class Entry:
    """One message: pieces of one row format, or without pieces and row format a skip to ``offset``.

    ``rows``: how many, of an entry that is mergeable.
    """

    after: int
    row_format: RowFormat | None
    pieces: list[Piece]
    offset: int
    mergeable: bool = False
    rows: int = 0

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)


class Control(enum.Enum):
    """Messages without rows."""

    FLUSH = "flush"
    CLOSE = "close"


class Pause(NamedTuple):
    """Send nothing for so many seconds: the writer takes no rows of the table now."""

    seconds: float


class Refusal(NamedTuple):
    """The refused entry and the error. ``rows``: a bitmap of the rows at fault; empty when the writer did not say."""

    entry: Entry
    error: wire.Error
    rows: bytes = b""
