"""Files that must go: what dead instants left behind, and names that slots gave up (rules D1, TM4, W2, W3)."""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from headgate_tables.commitlog.claim import Claim
from headgate_tables.commitlog.reservations import Reservations
from headgate_tables.commitlog.slot import Body
from headgate_tables.errors import RetryLater


class DeadNames:
    """The dead names of the handle with ``claim``. Remembers what this handle has searched for and deleted."""

    def __init__(self, claim: Claim, reservations: Reservations) -> None:
        self._claim = claim
        self._reservations = reservations
        self._searched: set[str] = set()
        self._deleted: set[str] = set()

    @property
    def by_instant(self) -> Mapping[str, Sequence[str]]:
        """Dead instants, including those that only the next slot makes dead, with the names that slots gave up for deletion."""
        dead = {instant: names or [] for instant, names in self._claim.state.dead.items()}
        return {**dead, **dict.fromkeys(self._reservations.given_up, ())}

    @property
    def sweep_is_due(self) -> bool:
        """Whether nobody has searched yet for the files of some dead instant."""
        return any(instant not in self._searched for instant in self.by_instant)

    @property
    def unsettled(self) -> Sequence[str]:
        """Dead instants whose files a paused process may still create where readers see them (rules W2, W3).

        An instant that began under this handle on a local disk is settled once its files were searched for: a checkpoint's data
        waits in a stage, and only its owner creates its timeline files. A plan never is: others create its outputs under their
        final names.
        """
        return [instant for instant, names in self.by_instant.items() if not self._is_settled(instant, names)]

    def _is_settled(self, instant: str, names: Sequence[str]) -> bool:
        first = self._claim.first_instant
        own = self._claim.store.stages and bool(first) and instant >= first
        return own and instant in self._searched and not any(self._claim.layout.is_data(name) for name in names)

    def note_searched(self, instants: Iterable[str]) -> None:
        """Notes that the files of these dead instants were searched for."""
        self._searched.update(instants)

    def delete_given_up(self) -> None:
        """Deletes the files whose names slots have declared dead (rule D1); the next slot records that they are gone."""
        store, is_data = self._claim.store, self._claim.layout.is_data
        for key, names in self._claim.state.deleting.items():
            if key not in self._deleted:
                # One after the other, in the slot's order: a reader of the timeline must never find a gap in it (hazard H8).
                for name in names:
                    if not is_data(name):
                        store.delete([name])
                data = {name for name in names if is_data(name)}
                store.delete(data)
                store.delete(self._staged(data))
                self._deleted.add(key)

    def delete_decided(self) -> None:
        """As ``delete_given_up``, right behind a slot that was won. What the store does not delete now goes with the next call of
        either: an error would tell the caller that nothing was decided.
        """
        with contextlib.suppress(RetryLater):
            self.delete_given_up()

    def _staged(self, paths: Collection[str]) -> Iterator[str]:
        """The other names of these files, which they have until the next fold: with them the bytes would stay on the disk."""
        return (file.stage for slot in self._claim.unfolded for file in slot.files if file.stage and file.path in paths)

    def with_deleted(self, body: Body) -> Body:
        """The body of the next slot, with the files that this handle has deleted since the last one."""
        return replace(body, deleted=sorted(self._deleted)) if self._deleted else body

    def note_recorded(self, body: Body) -> None:
        """A slot with this ``body`` was won."""
        self._deleted.difference_update(body.deleted or ())
