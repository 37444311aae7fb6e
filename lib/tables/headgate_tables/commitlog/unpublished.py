"""Slots that were won and whose files are not in place yet: published in order, also those of other owners (rules P1, T6, W2)."""

import contextlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from headgate_tables.commitlog.claim import Claim
from headgate_tables.commitlog.publish import REVOKED, Usable, given_up, make_durable, publish, replaced_after
from headgate_tables.commitlog.slot import Slot
from headgate_tables.commitlog.tail import read_state
from headgate_tables.errors import DeposedError, MissingFileError, OutcomeUnknownError, SyncFailedError, TablesError

WORTH_A_LISTING = 2
"""From so many files of unpublished slots in a folder on, the folder is listed: a file by itself costs two requests."""


class Unpublished:
    """The unpublished slots of the handle with ``claim``. ``usable``: see ``publish``."""

    def __init__(self, claim: Claim, usable: Usable) -> None:
        self._claim = claim
        self._store = claim.store
        self._layout = claim.layout
        self._clock = claim.system.clock
        self._usable = usable

    def catch_up(self) -> None:
        """Publishes all of them. A slot that fails here is tried again before anything new is decided, so that slots are
        published in order (rule P1). Raises as ``publish``, SyncFailedError.
        """
        claim = self._claim
        if claim.unpublished:
            with claim.ending_on_failed_sync():
                self._revoke_stages()
        listed = self._listed(claim.unpublished)
        while claim.unpublished:
            slot = claim.unpublished[0]
            self._put_in_place(slot, given_up(claim.unfolded) | replaced_after(slot.n, claim.unfolded), listed)
            del claim.unpublished[0]

    def _listed(self, slots: Sequence[Slot]) -> Mapping[str, int]:
        """Sizes of derived files that are there, by path, in folders to which the slots have many: after a takeover nearly all of
        a hundred slots are published, and rows wait for the answers of an object store. Empty on a local disk, where a power cut
        may have left a file of the right size torn (rule P2).
        """
        if self._store.stages:
            return {}
        names: defaultdict[str, list[str]] = defaultdict(list)
        for slot in slots:
            for path, _ in slot.publish:
                folder, _, name = path.rpartition("/")
                names[folder].append(name)
        return {
            f"{folder}/{name}": size
            for folder, wanted in names.items()
            if len(wanted) >= WORTH_A_LISTING
            # From just before the first one on: the timeline of a table that keeps its commits for long has many older ones.
            for name, size in self._store.list_folder(folder, after=min(wanted)[:-1], sizes=True).sizes.items()
        }

    def publish_own(self, slot: Slot, there: Mapping[str, int] = MappingProxyType({})) -> None:
        """Publishes the slot that this handle has just won. ``there``: see ``CommitLog.commit``.

        A successor publishes the same slot: it completes what we cannot reach (rule W2) or are too late for. The commit stands,
        so no DeposedError is raised, after which clients would send the rows again.
        Raises OutcomeUnknownError: the slot stands, but readers do not see it yet; SyncFailedError.
        """
        try:
            try:
                with contextlib.suppress(DeposedError):
                    self._put_in_place(slot, given_up([slot]), there)
            except MissingFileError:
                if read_state(self._store, self._layout)[0].epoch <= self._claim.state.epoch:  # less: the whole table is gone
                    raise
                self._claim.depose()
        except SyncFailedError:
            raise
        except TablesError as error:
            raise OutcomeUnknownError(
                f"slot {slot.n} has decided the commit for good, but readers do not see it yet: {error.message}",
                fix="Do not send the rows again. Remove the cause; the next write to the table puts the commit in place.",
            ) from error
        self._claim.unpublished.remove(slot)

    def _put_in_place(self, slot: Slot, dead: Collection[str], listed: Mapping[str, int]) -> None:
        claim = self._claim
        with claim.ending_on_failed_sync():
            publish(self._store, self._layout, self._clock, slot, dead, self._usable, claim.check_owner_if_late, listed)

    def make_durable(self) -> None:
        """Syncs everything published after the newest fold, then removes its staged names. Raises SyncFailedError."""
        with self._claim.ending_on_failed_sync():
            make_durable(self._store, self._claim.unfolded)

    def _revoke_stages(self) -> None:
        """Older epochs cannot link any more (rule W2); ``publish`` finds what they won under the new name."""
        if not self._store.stages:
            return
        stages, epoch = self._layout.stages, self._claim.state.epoch
        for folder in self._store.list_folder(stages).folders:
            if folder.isascii() and folder.isdigit() and int(folder) < epoch:
                # A fresh name: a process that does not know of us yet may have made the folder again after the last time.
                fresh = f"{folder}{REVOKED}-{epoch}-{self._claim.system.ids.token()}"
                self._store.rename_folder(f"{stages}/{folder}", f"{stages}/{fresh}")
