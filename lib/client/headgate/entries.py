"""What a channel's queue holds, and the refusals of it."""

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from headgate.rows import RowFormat
from headgate_proto.api.v1 import errors_pb2 as wire

Content: TypeAlias = "bytes | pa.Buffer"
"""A record batch message. Large ones stay in the memory in which Arrow has made them."""


class EncodedRows(NamedTuple):
    """All or some rows of a call as one record batch message.

    ``size`` counts against the channel's limit. ``partitions``: the rows belong to no more than these; 0 of a table without.
    """

    rows: int
    size: int
    content: Content
    mergeable: bool
    partitions: int = 0


class Piece(NamedTuple):
    """Encoded rows in the queue; ``offset`` is that of the last row.

    ``calls``: the offset of each call, when these are the rows of several calls with one row each.
    """

    offset: int
    size: int
    content: Content
    calls: Sequence[int] = ()


@dataclass(slots=True, eq=False)
class Entry:
    """One message: pieces of one row format, or without pieces and row format a skip to ``offset``.

    ``rows`` and ``partitions``: how many, of an entry that is mergeable.
    """

    after: int
    row_format: RowFormat | None
    pieces: list[Piece]
    offset: int
    mergeable: bool = False
    rows: int = 0
    partitions: int = 0

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)

    @property
    def has_calls(self) -> bool:
        """Whether it has the rows of several calls."""
        return len(self.pieces) > 1 or len(self.pieces[0].calls) > 1


Halve = Callable[[RowFormat, Piece], tuple[Piece, Piece]]


def split(entry: Entry, halve: Halve) -> Iterator[Entry]:
    """One entry a piece, or the halves of the only one, never merged again.

    No row of a refused entry was accepted, so its boundaries may change.
    """
    after, pieces = entry.after, entry.pieces
    if len(pieces) == 1 and entry.row_format is not None:
        pieces = [*halve(entry.row_format, pieces[0])]
    for piece in pieces:
        yield Entry(after, entry.row_format, [piece], piece.offset)
        after = piece.offset


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
