"""Files that must go: what dead instants left behind, and names that slots gave up (rules D1, TM4, W2, W3)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from headgate_tables.commitlog.claim import Claim
from headgate_tables.commitlog.reservations import Reservations
from headgate_tables.commitlog.slot import Body


class DeadNames:
    """Of the handle with ``claim`` and its ``reservations``. Remembers what this handle has looked for and deleted."""

    def __init__(self, claim: Claim, reservations: Reservations) -> None:
        self._claim = claim
        self._reservations = reservations
        self._looked_for: set[str] = set()
        self._deleted: set[str] = set()

    @property
    def by_instant(self) -> Mapping[str, Sequence[str]]:
        """Dead instants, also those that only the next slot makes so, with the names that slots gave up for deletion."""
        dead = {instant: names or [] for instant, names in self._claim.state.dead.items()}
        return {**dead, **dict.fromkeys(self._reservations.given_up, ())}

    @property
    def sweep_is_due(self) -> bool:
        """Whether nobody has looked yet for what a dead instant left behind."""
        return any(instant not in self._looked_for for instant in self.by_instant)

    @property
    def unsettled(self) -> Sequence[str]:
        """Dead instants of which a paused process may still leave files where readers see them (rules W2, W3).

        Not those that were looked for and began under this handle on a local disk: a checkpoint's data waits in a stage, and only
        its owner makes its files on the timeline. A plan's outputs are made under their final names, by others.
        """
        return [instant for instant, names in self.by_instant.items() if not self._is_settled(instant, names)]

    def _is_settled(self, instant: str, names: Sequence[str]) -> bool:
        first = self._claim.first_instant
        own = self._claim.store.stages and bool(first) and instant >= first
        return own and instant in self._looked_for and not any(self._claim.layout.is_data(name) for name in names)

    def looked_for(self, instants: Iterable[str]) -> None:
        """Notes that somebody has looked for what these dead instants left behind."""
        self._looked_for.update(instants)

    def delete_given_up(self) -> None:
        """Deletes the files whose names slots have declared dead (rule D1); the next slot says that they are gone."""
        store, is_data = self._claim.store, self._claim.layout.is_data
        for key, names in self._claim.state.deleting.items():
            if key not in self._deleted:
                # One after the other, in the slot's order: a reader of the timeline must never find a gap in it (hazard H8).
                for name in names:
                    if not is_data(name):
                        store.delete([name])
                store.delete(name for name in names if is_data(name))
                self._deleted.add(key)

    def stated_in(self, body: Body) -> Body:
        """The body of the next slot, with what this handle has deleted since the last one."""
        return replace(body, deleted=sorted(self._deleted)) if self._deleted else body

    def have_been_stated(self, body: Body) -> None:
        """A slot with this ``body`` was won."""
        self._deleted.difference_update(body.deleted or ())
