"""One checkpoint, from its filling to its decision (rules RO1, RO3, RO5)."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, assert_never

from headgate_coordinator.core.events import BarrierPassed, Flushed, OfFlush, Progressed, WaitsForRoom
from headgate_coordinator.core.instructions import Membership
from headgate_coordinator.core.reconciling import FalseFile, Finding, reconcile


class Phase(Enum):
    """Phase of a checkpoint. One that is SENT can no longer be aborted, only decided (rule RO2)."""

    FILLING = "filling"
    FLUSHING = "flushing"
    SENT = "sent"
    WON = "won"


class Checkpoint:
    """One checkpoint and the reports that came in for it; its members never change (rule RO3).

    ``takes_rows``: False while it takes none because slices are full. ``slices_were_counted``: False if their figures were not
    known when it began. ``instant_wanted``: a bucket side has rows; ``instant_asked``: the committer issues it.
    ``dirty_since``: since when it has rows; None: it has none. ``progressed_at``: when it last made progress.
    ``findings``: what was found not to add up as it came.
    """

    def __init__(self, generation: int, membership: Membership) -> None:
        self.generation = generation
        self.membership = membership
        self.members = dict(membership.members)
        self.phase = Phase.FILLING
        self.takes_rows = True
        self.slices_were_counted = True
        self.instant_wanted = False
        self.instant_asked = False
        self.instant_issued = False
        self.dirty_since: float | None = None
        self.barrier_at = self.progressed_at = 0.0
        self.findings: list[Finding] = []
        self.channels: Mapping[str, tuple[int, int, str]] = {}
        self._passed: dict[str, BarrierPassed] = {}
        self._flushed: dict[str, Flushed] = {}
        self._waiting_for_room = False

    @property
    def number(self) -> int:
        """Number within its generation, from 1."""
        return self.membership.checkpoint

    def begin_flush(self, now: float) -> None:
        """Begins to flush: its barrier is sent."""
        self.phase = Phase.FLUSHING
        self.barrier_at = self.progressed_at = now

    def note_report(self, event: OfFlush, now: float) -> None:
        """Notes that an ingest side passed the barrier or waits for room, a bucket side flushed all rows, or either made
        progress.
        """
        if self.phase is Phase.FLUSHING and event.process in self.members:
            match event:
                case BarrierPassed():
                    self._passed[event.process] = event
                case Flushed():
                    self._flushed[event.process] = event
                case Progressed():
                    pass
                case WaitsForRoom():
                    self._waiting_for_room = True
                    return
                case _:
                    assert_never(event)
            self.progressed_at = now

    def note_instant(self, now: float) -> None:
        """Notes that its instant is on the timeline."""
        self.instant_issued = True
        self.progressed_at = now

    @property
    def is_complete(self) -> bool:
        """Whether every member has reported both as ingest side and as bucket side (rules RO3, EX2).

        An instant that was asked for is awaited even if no file needs it: a refusal after the commit was sent would be taken
        for the commit's (test_a_checkpoint_waits_for_its_instant_so_that_a_refusal_is_never_mistaken).
        """
        whole = self._passed.keys() == self.members.keys() == self._flushed.keys()
        return self.phase is Phase.FLUSHING and whole and self.instant_issued == self.instant_wanted

    def reconcile(self) -> list[Finding]:
        """What does not add up in its reports, once it is complete (rule RO10)."""
        return [*reconcile(self._passed, self._flushed), *self.findings]

    def note_false_files(self, why: Mapping[int, str]) -> None:
        """Notes what is wrong with some of its files, by their positions in ``files``."""
        writers = [process for process in self.members for _ in self._flushed[process].files]
        self.findings += [FalseFile(writers[at], text) for at, text in why.items()]

    @property
    def movers(self) -> set[str]:
        """Members that handed rows over or received some."""
        handed = {process for process, event in self._passed.items() if event.handed}
        return handed | {process for process, event in self._flushed.items() if event.received}

    @property
    def waits_for_writers(self) -> bool:
        """Whether it waits for members, not for its instant or its slot, which this coordinator gets however long that takes."""
        return self.phase is Phase.FLUSHING and not self.is_complete and self.instant_issued == self.instant_wanted

    def missing_reports(self) -> list[str]:
        """What it still waits for, as text for messages."""
        waits = [f"the barrier of {process}" for process in self.members if process not in self._passed]
        return waits + [f"the files of {process}" for process in self.members if process not in self._flushed]

    @property
    def silent_writer(self) -> str:
        """The only member whose ingest side did not pass the barrier; "": there are more, or none, or one waits for another's
        room, so that nobody can say which writer is at fault (rule RO11).
        """
        silent = self.members.keys() - self._passed.keys()
        return next(iter(silent)) if len(silent) == 1 and not self._waiting_for_room else ""

    @property
    def files(self) -> list[Any]:
        """Write statuses of all bucket sides, in the order of members."""
        return [file for process in self.members if process in self._flushed for file in self._flushed[process].files]

    @property
    def needs_slot(self) -> bool:
        """Whether it needs a slot (rule RO5)."""
        return bool(self.files or self.channels)

    @property
    def offsets(self) -> dict[str, int]:
        """Accepted offset of each channel that grew."""
        return {name: offset for event in self._passed.values() for name, offset in event.offsets.items()}

    @property
    def key_group_bytes(self) -> dict[int, int]:
        """Arrow bytes by key group, over all bucket sides."""
        total: dict[int, int] = {}
        for event in self._flushed.values():
            for group, size in event.key_group_bytes.items():
                total[group] = total.get(group, 0) + size
        return total

    def bytes_from(self, process: str) -> int:
        """Arrow bytes that this ingest side took into the checkpoint; 0 until it reported."""
        return self._passed[process].bytes if process in self._passed else 0

    @property
    def rows(self) -> int:
        """Rows that bucket sides received, those included that others beat."""
        return sum(tally.rows for event in self._flushed.values() for tally in event.received.values())

    @property
    def largest_intake(self) -> int:
        """Arrow bytes at the ingest side that took the most."""
        return max((event.bytes for event in self._passed.values()), default=0)

    @property
    def bytes(self) -> int:
        """Arrow bytes of the checkpoint, over all ingest sides."""
        return sum(event.bytes for event in self._passed.values())
