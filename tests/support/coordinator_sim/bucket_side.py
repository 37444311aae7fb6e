"""The bucket side of a writer as the simulation has it, and the exchange that feeds it. Rules can be broken by their names."""

from collections import deque
from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from headgate_coordinator.core import events
from headgate_coordinator.core.events import Event
from headgate_coordinator.core.instructions import Membership
from headgate_coordinator.core.tally import Tally
from support.coordinator_sim.slots import File, Row

Tag = tuple[int, int]
ROW_BYTES = 10


def tallied(before: Tally, rows: tuple[Row, ...]) -> Tally:
    """With a frame of these rows behind it."""
    digest = sum(position * row.offset for position, row in enumerate(rows, start=1))
    return Tally(before.rows + len(rows), before.checksum * 31 + digest)


@dataclass(slots=True)
class Frame:
    """On an exchange stream: rows of a checkpoint, or its barrier with the number of rows before it (rule EX2)."""

    checkpoint: int
    rows: tuple[Row, ...] | None
    count: int = 0


@dataclass(slots=True)
class Exchange:
    """From one writer to another, under one (epoch, generation) (rule EX1). Resumes where it broke, so it loses nothing."""

    tag: Tag
    sender: str
    receiver: str
    frames: deque[Frame] = field(default_factory=deque)
    sent: int = 0


@dataclass(slots=True)
class Bucket:
    """Rows of one checkpoint on their way into files. ``took``: what came, by ingest side."""

    took: dict[str, Tally] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    files: list[File] = field(default_factory=list)
    barriers: dict[str, int] = field(default_factory=dict)
    received: dict[str, int] = field(default_factory=dict)
    instant: str = ""
    asked: bool = False
    done: bool = False
    written: int = 0
    bytes: dict[int, int] = field(default_factory=dict)


class BucketSide:
    """Rows are filed under the checkpoint that they carry. ``memberships``: what is known of checkpoints, by number.

    ``slow``: a step at a checkpoint's end writes one row more, and nothing is durable before the last one. ``lies``: what it
    does with rows and does not say; "": it is honest.
    """

    def __init__(self, process: str, broken: Set[str], key_groups: int, *, slow: bool = False, lies: str = "") -> None:
        self._key_groups = key_groups
        self.slow = slow
        self.lies = lies
        self.memberships: dict[int, Membership] = {}
        self._process = process
        self._broken = broken
        self._buckets: dict[int, Bucket] = {}

    @property
    def has_files(self) -> bool:
        """Whether any were written."""
        return any(bucket.files for bucket in self._buckets.values())

    def instant(self, checkpoint: int, instant: str) -> None:
        """Files of the checkpoint may be written."""
        self._buckets.setdefault(checkpoint, Bucket()).instant = instant

    def take(self, sender: str, frame: Frame) -> None:
        """Rows or a barrier of one ingest side."""
        bucket = self._buckets.setdefault(frame.checkpoint, Bucket())
        if frame.rows is None:
            bucket.barriers[sender] = frame.count
        else:
            bucket.received[sender] = bucket.received.get(sender, 0) + 1
            if self.lies == "drops frames":
                return
            bucket.took[sender] = tallied(bucket.took.get(sender, Tally()), frame.rows)
            if self.lies == "writes nothing":
                return
            bucket.rows += frame.rows
            for row in frame.rows:
                group = row.key % self._key_groups
                bucket.bytes[group] = bucket.bytes.get(group, 0) + ROW_BYTES

    def step(self, generation: int, *, early: bool) -> Iterator[Event]:
        """Asks for instants, flushes what is whole (or anything, ``early``), and reports whole checkpoints."""
        for checkpoint, bucket in sorted(self._buckets.items()):
            if bucket.rows and not bucket.asked:
                bucket.asked = True
                yield events.InstantAsked(self._process, generation, checkpoint)
            whole = self._is_whole(checkpoint, bucket)
            if whole and bucket.instant and self.slow and bucket.written < len(bucket.rows):
                bucket.written += 1
                yield events.Progressed(self._process, generation, checkpoint)
            elif bucket.rows and bucket.instant and (whole or (early and self._may_flush(checkpoint, bucket))):
                bucket.files.append(File(bucket.instant, self._process, tuple(bucket.rows)))
                bucket.rows = []
            if whole and not bucket.rows and not bucket.done:
                bucket.done = True
                yield self._flushed(generation, checkpoint, bucket)

    def _flushed(self, generation: int, checkpoint: int, bucket: Bucket) -> events.Flushed:
        files, took = tuple(bucket.files), dict(bucket.took)
        if self.lies == "reports nothing":
            files, took = (), {}
        written = sum(len(file.rows) for file in files)
        return events.Flushed(self._process, generation, checkpoint, files, dict(bucket.bytes), took, written)

    def _may_flush(self, checkpoint: int, bucket: Bucket) -> bool:
        """One file is kept for the checkpoint's end."""
        membership = self.memberships.get(checkpoint)
        if membership is None:
            return False
        limit = membership.share.files
        return not limit or len(bucket.files) < limit - 1 or "early files" in self._broken

    def _is_whole(self, checkpoint: int, bucket: Bucket) -> bool:
        membership = self.memberships.get(checkpoint)
        if membership is None or self._process not in dict(membership.members):
            return False
        if "all barriers" in self._broken:
            return bool(bucket.barriers)
        counts = {sender: bucket.received.get(sender, 0) for sender, _ in membership.members}
        return bucket.barriers == counts or ("counts" in self._broken and bucket.barriers.keys() == counts.keys())
