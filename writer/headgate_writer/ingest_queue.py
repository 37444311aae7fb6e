"""The queue at the ingest side of one table: batches of all channels in the order of arrival, and barriers between them. Pure."""

from collections import deque
from dataclasses import dataclass
from typing import assert_never

from headgate_writer.attached import Membership
from headgate_writer.channels import Entry


@dataclass(frozen=True, slots=True, eq=False)
class Barrier:
    """Ends ``checkpoint``: entries before it belong to that checkpoint, entries behind it to the checkpoint of ``next``."""

    checkpoint: int
    next: Membership


class IngestQueue:
    """Entries and barriers that wait. ``nbytes``: Arrow bytes of the batches."""

    def __init__(self) -> None:
        self._waiting: deque[Entry | Barrier] = deque()
        self._barriers = 0
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def has_barrier(self) -> bool:
        """Whether the entries in front belong to a checkpoint that has ended."""
        return self._barriers > 0

    def append_entry(self, entry: Entry) -> None:
        """Appends an entry."""
        self._waiting.append(entry)
        self.nbytes += _arrow_bytes(entry)

    def append_barrier(self, barrier: Barrier) -> None:
        """Appends a barrier."""
        self._waiting.append(barrier)
        self._barriers += 1

    def take_turn(self, limit: int) -> Barrier | list[Entry]:
        """Takes the barrier in front, or the entries before the next barrier: at least one, then up to ``limit`` bytes."""
        taken: list[Entry] = []
        nbytes = 0
        while self._waiting:
            match self._waiting[0]:
                case Barrier() as barrier:
                    if taken:
                        break
                    self._waiting.popleft()
                    self._barriers -= 1
                    return barrier
                case Entry() as entry:
                    nbytes += _arrow_bytes(entry)
                    if taken and nbytes > limit:
                        break
                    taken.append(entry)
                    self._waiting.popleft()
                case other:
                    assert_never(other)
        self.nbytes -= arrow_bytes(taken)
        return taken


def arrow_bytes(entries: list[Entry]) -> int:
    """Returns the Arrow bytes of all these entries together."""
    return sum(map(_arrow_bytes, entries))


def _arrow_bytes(entry: Entry) -> int:
    return entry.batch.nbytes if entry.batch is not None else 0
