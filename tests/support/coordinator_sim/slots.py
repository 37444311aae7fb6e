"""A table's storage as the simulation has it: slots that a number decides, and the invariant after each commit.

Rows are (channel, offset, incarnation, key). Written from the rules alone; shares no code with the coordinator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

ChannelRecord = tuple[int, int, str]
SLICES = 4
"""A row's is its key modulo this."""


class Row(NamedTuple):
    """One row as a producer sent it."""

    channel: str
    offset: int
    incarnation: int
    key: int


class File(NamedTuple):
    """A data file: what one bucket side flushed at once, in the order in which it had it."""

    instant: str
    process: str
    rows: tuple[Row, ...]


class ViolationError(AssertionError):
    """A rule that holds after every step does not."""


class StuckError(ViolationError):
    """Faults have stopped, and it does not come to rest."""


@dataclass(eq=False)
class Slot:
    """A request to create slot ``number``; it may land however late. Its identity is its nonce."""

    number: int
    kind: str
    instant: str | None = None
    files: Sequence[File] = ()
    channels: Mapping[str, ChannelRecord] = field(default_factory=dict)
    compacted: Sequence[int] = ()


class SlotLog:
    """Create-only: the first request for a number has it (rule C2).

    ``limit``: log files of a slice that must never be passed; 0: none, and nobody is told of them.
    """

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self.log_files = [0] * SLICES
        self.fullest = 0
        self.slots: list[Slot] = []
        self.channels: dict[str, ChannelRecord] = {}
        self.committed_rows = 0
        self._instants: set[str] = set()
        self._last: dict[tuple[str, int], int] = {}

    def land(self, slot: Slot) -> None:
        """Raises ViolationError when what it decides is wrong."""
        if slot.number != len(self.slots):
            return
        self.slots.append(slot)
        if slot.kind == "commit":
            self._check_instant(slot)
            self._check_rows(slot)
            self._check_slices(slot)
        for number in slot.compacted:
            self.log_files[number] = 0
        for name, record in slot.channels.items():
            self._check_record(name, record)
        self.channels.update(slot.channels)

    @property
    def epoch(self) -> int:
        """Of the newest FENCE."""
        return sum(slot.kind == "fence" for slot in self.slots)

    def offset(self, channel: str) -> int:
        """What is committed of it."""
        return self.channels.get(channel, (0, 0, ""))[1]

    def incarnation(self, channel: str) -> int:
        """The newest durable one."""
        return self.channels.get(channel, (0, 0, ""))[0]

    def _check_instant(self, slot: Slot) -> None:
        if any(file.instant != slot.instant for file in slot.files):
            raise ViolationError(f"files of other instants are committed under {slot.instant}")
        if slot.instant is not None:
            if slot.instant in self._instants:
                raise ViolationError(f"instant {slot.instant} is committed twice")
            self._instants.add(slot.instant)

    def _check_rows(self, slot: Slot) -> None:
        rows = [row for file in slot.files for row in file.rows]
        by_channel: dict[str, list[int]] = {name: [] for name in slot.channels}
        for row in rows:
            if row.channel not in by_channel:
                raise ViolationError(f"{row} is committed without its channel's offset")
            by_channel[row.channel].append(row.offset)
            if row.incarnation != self.incarnation(row.channel):
                raise ViolationError(f"{row} is committed, but incarnation {self.incarnation(row.channel)} holds the channel")
            last = self._last.get((row.channel, row.key), 0)
            if row.offset <= last:
                raise ViolationError(f"{row} comes behind offset {last} of its channel and key")
            self._last[row.channel, row.key] = row.offset
        for name, offsets in by_channel.items():
            before, after = self.offset(name), slot.channels[name][1]
            if sorted(offsets) != list(range(before + 1, after + 1)):
                raise ViolationError(f"{name} goes from {before} to {after} with the rows {sorted(offsets)}")
        self.committed_rows += len(rows)

    def _check_slices(self, slot: Slot) -> None:
        for file in slot.files:
            for number in {row.key % SLICES for row in file.rows}:
                self.log_files[number] += 1
        self.fullest = max(self.fullest, *self.log_files)
        if self.limit and self.fullest > self.limit:
            raise ViolationError(f"slices have {self.log_files} log files, the limit is {self.limit}")

    def _check_record(self, name: str, record: ChannelRecord) -> None:
        incarnation, offset, principal = self.channels.get(name, (0, 0, record[2]))
        if record[0] < incarnation or record[1] < offset or record[2] != principal:
            raise ViolationError(f"the record of {name} goes from {(incarnation, offset, principal)} back to {record}")
