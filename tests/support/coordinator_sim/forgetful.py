"""Walks of two coordinators whose Redis loses all leases, again and again: a lease need not be with who won the last epoch."""

from collections.abc import Set
from dataclasses import dataclass
from random import Random

from headgate_coordinator.core import events
from headgate_coordinator.core.table_coordinator import TableCoordinator
from support.coordinator_sim.owner import Owner
from support.coordinator_sim.slots import Slot
from support.coordinator_sim.walk import Walk


@dataclass(eq=False)
class Coordinator:
    """``fence``: its request for an epoch is under way. ``owner``: what it serves the table with."""

    owner: Owner | None = None
    fence: "Fence | None" = None


@dataclass(eq=False)
class Fence:
    """It lands even if who sent it has given the table up since."""

    coordinator: Coordinator


class ForgetfulWalk(Walk):
    """Its own draws leave those of other walks as they are. ``lease``: who has it, as Redis says."""

    def __init__(self, seed: int, make: type[TableCoordinator] = TableCoordinator, broken: Set[str] = frozenset()) -> None:
        self._chance = Random(seed + 2_000_000)
        self.coordinators = [Coordinator(), Coordinator()]
        self.lease: Coordinator | None = self.coordinators[0]
        self._fences: list[Fence] = []
        super().__init__(seed, make, broken)
        self.coordinators[0].owner = self.owner
        self._weights[self._forget] = self._chance.choice((0.3, 1.0, 3.0))
        self._weights[self._renew] = self._chance.choice((1.0, 3.0, 10.0))
        self._weights[self._stand] = self._chance.choice((1.0, 3.0, 10.0))
        self._weights[self._land_fence] = self._chance.choice((1.0, 3.0, 10.0))

    def _forget(self) -> None:
        self.lease = None
        self.faults["_forget"] = self.faults.get("_forget", 0) + 1

    _lose_owner = _forget

    def _renew(self) -> None:
        self._beat_of(self._chance.choice(self.coordinators))

    def _beat_of(self, one: Coordinator) -> None:
        """Rule R1."""
        if one.owner is None and one.fence is None:
            return
        if self.lease is None:
            self.lease = one
            if one.owner is not None:
                one.owner.tell(events.LeaseRecreated(), self.now)
        elif self.lease is not one:
            one.fence = None
            if one.owner is not None:
                one.owner.left = True
        self.retire()

    def _stand(self) -> None:
        self._stand_for(self._chance.choice(self.coordinators))

    def _stand_for(self, one: Coordinator) -> None:
        if one.owner is None and one.fence is None and self.lease in (None, one):
            self.lease = one
            self._send_fence(one)

    def _send_fence(self, one: Coordinator) -> None:
        one.fence = Fence(one)
        self._fences.append(one.fence)

    def _land_fence(self) -> None:
        if self._fences:
            landed = self._fences.pop(self._chance.randrange(len(self._fences)))
            one = landed.coordinator
            if one.fence is landed:
                self.take_over()
                one.owner, one.fence = self.owner, None
            else:
                self.log.land(Slot(len(self.log.slots), "fence"))
            self.retire()

    def retire(self) -> None:
        """Who was deposed opens the table again if the lease is its own; another one stands for what was handed over."""
        for one in self.coordinators:
            if one.owner is None or not one.owner.over:
                continue
            ended, one.owner = one.owner, None
            for link in self.links:
                if link.owner is ended:
                    link.break_at_random(self.random)
            if self.lease is one and ended.committer.deposed:
                self._send_fence(one)
            elif self.lease is one:
                self.lease = None
        self.owners = [owner for owner in self.owners[:-1] if not owner.over] + self.owners[-1:]

    def look_after(self) -> None:
        """Redis keeps what it is told from now on."""
        for one in self.coordinators:
            self._beat_of(one)
        for one in self.coordinators:
            self._stand_for(one)
        while self._fences:
            self._land_fence()
