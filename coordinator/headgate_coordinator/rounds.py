"""One round, from its filling to its decision (rules RO1, RO3, RO5)."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from headgate_coordinator.events import BarrierPassed, Flushed
from headgate_coordinator.instructions import Plan


class Phase(Enum):
    """Where a round stands. SENT cannot be aborted any more, only decided (rule RO2)."""

    FILLING = "filling"
    FLUSHING = "flushing"
    SENT = "sent"
    WON = "won"


class Round:
    """What one round is and what has come in for it; its members are pinned (rule RO3).

    ``takes_rows``: False while nothing may be taken into it since slices are full. ``begun_counted``: False if it was not known
    then how full they are.
    """

    def __init__(self, generation: int, plan: Plan) -> None:
        self.generation = generation
        self.plan = plan
        self.members = dict(plan.members)
        self.phase = Phase.FILLING
        self.takes_rows = True
        self.begun_counted = True
        self.instant_asked = False
        self.instant_issued = False
        self.barrier_at = 0.0
        self.channels: Mapping[str, tuple[int, int, str]] = {}
        self._passed: dict[str, BarrierPassed] = {}
        self._flushed: dict[str, Flushed] = {}

    @property
    def number(self) -> int:
        """Within its generation, from 1."""
        return self.plan.round

    def end(self, now: float) -> None:
        """Its barrier is sent."""
        self.phase = Phase.FLUSHING
        self.barrier_at = now

    def report(self, event: BarrierPassed | Flushed) -> None:
        """An ingest side is through with it, or a bucket side has all its rows on the store."""
        if self.phase is Phase.FLUSHING and event.process in self.members:
            if isinstance(event, BarrierPassed):
                self._passed[event.process] = event
            else:
                self._flushed[event.process] = event

    @property
    def complete(self) -> bool:
        """Every member has reported both as ingest side and as bucket side (rules RO3, EX2).

        An instant that was asked for is awaited even if no file needs it: a refusal that comes after the commit was sent
        would be taken for the commit's (test_a_round_waits_for_its_instant_so_that_a_refusal_is_never_mistaken).
        """
        whole = self._passed.keys() == self.members.keys() == self._flushed.keys()
        return self.phase is Phase.FLUSHING and whole and self.instant_issued == self.instant_asked

    def missing(self) -> list[str]:
        """What it still waits for, for messages."""
        waits = [f"the barrier of {process}" for process in self.members if process not in self._passed]
        waits += [] if self.instant_issued == self.instant_asked else ["its instant"]
        return waits + [f"the files of {process}" for process in self.members if process not in self._flushed]

    @property
    def files(self) -> list[Any]:
        """Write statuses of all bucket sides, in the order of the members."""
        return [file for process in self.members if process in self._flushed for file in self._flushed[process].files]

    @property
    def offsets(self) -> dict[str, int]:
        """The accepted offset of each channel that grew."""
        offsets: dict[str, int] = {}
        for event in self._passed.values():
            for name, offset in event.offsets.items():
                offsets[name] = max(offset, offsets.get(name, 0))
        return offsets

    @property
    def key_group_bytes(self) -> dict[int, int]:
        """Arrow bytes by key group, all bucket sides together."""
        total: dict[int, int] = {}
        for event in self._flushed.values():
            for group, size in event.key_group_bytes.items():
                total[group] = total.get(group, 0) + size
        return total

    def bytes_of(self, process: str) -> int:
        """Arrow bytes that this ingest side took in the round; 0 while it has not said so."""
        return self._passed[process].bytes if process in self._passed else 0

    @property
    def bytes(self) -> int:
        """Arrow bytes of the round."""
        return sum(event.bytes for event in self._passed.values())
