"""One handle's claim on the log: from its FENCE slot on it may append, until another process wins a slot or an error ends it.

Loading and reading never write; a handle that lost a slot to somebody else is deposed and stays so (rules T1, C2).
"""

import contextlib
import math
from collections.abc import Callable, Iterator

from headgate_tables.commitlog.bodies import Commit, Fence
from headgate_tables.commitlog.layout import number_name
from headgate_tables.commitlog.log_format import LogFormat
from headgate_tables.commitlog.records import OwnerProcess
from headgate_tables.commitlog.slot import Body, Slot
from headgate_tables.commitlog.state import LogState
from headgate_tables.commitlog.tail import read_boundary, read_on, read_state
from headgate_tables.commitlog.times import TimeGenerator
from headgate_tables.commitlog.tombstone import dropped_error, grace_error, read_tombstone
from headgate_tables.commitlog.win import unchecked, win
from headgate_tables.errors import (
    CorruptFileError,
    DeposedError,
    OutcomeUnknownError,
    ReopenTable,
    SyncFailedError,
    TableOwnedError,
    TablesError,
    TransactionError,
)
from headgate_tables.storage.store import Store
from headgate_tables.storage.workers import both
from headgate_tables.system import System

LIVE_INSTANTS = 2
"""Checkpoint instants alive at a time (rule RO1): one filling, one committing."""
OWNERSHIP_TRUSTED_S = 60.0
"""Seconds after its last proof of ownership at which a process asks the log before it creates a file (hazard H8). Shorter:
commits that a busy store delays ask, too. Longer: dead instants have to be remembered far longer (headgate.log.retire.after).
"""


class Claim:
    """``state``: see ``CommitLog.state``. ``unfolded``: the slots after the newest fold. ``unpublished``: those of them
    whose files may not be in place yet, oldest first. ``first_instant``: of this handle's epoch, "" before its fence.
    ``there``: raises unless the table that was opened is still at its place.
    """

    def __init__(
        self,
        store: Store,
        layout: LogFormat,
        system: System,
        owner: OwnerProcess,
        *,
        take_over: bool,
        there: Callable[[], None] = unchecked,
    ) -> None:
        self.store = store
        self.layout = layout
        self.system = system
        self.state, self.unfolded = read_state(store, layout)
        self.unpublished: list[Slot] = []
        self._owner = owner
        self._take_over = take_over
        self._there = there
        self.first_instant = ""
        self._times: TimeGenerator | None = None
        self._deposed = False
        self._failed: ReopenTable | None = None
        self._owned_at = -math.inf

    @property
    def fenced(self) -> bool:
        """Whether this handle has won a FENCE slot, even if it was deposed since."""
        return self._times is not None

    @property
    def holds(self) -> bool:
        """Whether this handle may append, as far as it knows."""
        return self.fenced and not self._deposed and self._failed is None

    @property
    def times(self) -> TimeGenerator:
        """What issues the table's times (rule TM1). Raises TransactionError before the fence."""
        if self._times is None:
            raise TransactionError("this handle has not fenced the table", fix="Begin a transaction first.")
        return self._times

    def check(self) -> None:
        """Raises what ended the handle, if anything did."""
        if self._failed is not None:
            raise self._failed
        if self._deposed:
            raise self._deposed_error()

    def check_there(self) -> None:
        """As ``check``, and that the table is still the one that was opened: one request."""
        self.check()
        self._there()

    def check_owner(self) -> None:
        """Checks whether another process has won a slot since; one request, two on an object store. Writes nothing.

        Raises DeposedError, after which the handle is finished. A handle that has not fenced has nothing to lose.
        """
        self.check()
        asked_at = self.system.clock.monotonic()
        following = self.state.n + 1
        is_there = self.store.size(self.layout.slot_path(following)) is not None
        taken = is_there or read_boundary(self.store, self.layout) >= following
        if self.fenced and taken:
            self._deposed = True
            raise self._deposed_error()
        self._owned_at = asked_at

    def check_owner_if_late(self) -> None:
        """For a file that is about to be created. A process that slept may have been deposed, and what it won or reserved may
        have been published, archived and cleaned: the file would bring it back (hazard H8). Raises as ``check_owner``.
        """
        if self.system.clock.monotonic() - self._owned_at > OWNERSHIP_TRUSTED_S:
            self.check_owner()

    def end(self, error: ReopenTable) -> None:
        """From now on ``check`` raises ``error``."""
        self._failed = error

    def depose(self) -> None:
        """Notes that another process owns the table."""
        self._deposed = True

    def fence(self, *, accepting: bool = False, after_epoch: int = 0) -> None:
        """Wins a FENCE slot, with which a new epoch begins and two instants are reserved (rule T1).

        ``accepting``: the slot accepts times that are ahead of the clock. ``after_epoch``: the new epoch is above it, too. Raises
        TableOwnedError when a cluster owns the table, ClockError, OutcomeUnknownError.
        """
        while not self._fence(accepting=accepting, after_epoch=after_epoch):
            pass

    def _fence(self, *, accepting: bool, after_epoch: int) -> bool:
        """Tries once. False: another process won the number; look again."""
        self.state, self.unfolded = self._read_on()
        if self.state.dropped is not None:
            raise dropped_error(self.state.dropped)
        owner = self.state.owner
        if owner is not None and owner.kind == "cluster" and self._owner.kind != "cluster" and not self._take_over:
            raise TableOwnedError(
                f"the table belongs to {owner.describe()}",
                fix=f"Write through it: headgate.connect({owner.address!r}). If it is gone for good, open with take_over=True.",
            )
        times = TimeGenerator(self.system.clock, self.state.time, self.state.ahead)
        ahead = times.accept_ahead() if accepting else None
        reserved = [times.next() for _ in range(LIVE_INSTANTS)]
        body = Fence(owner=self._owner, reserved=reserved, ahead=ahead)
        self.unpublished = list(self.unfolded)
        if not self._win(self._slot(body, max(self.state.epoch, after_epoch) + 1)):
            return False
        self._times, self.first_instant = times, reserved[0]
        return True

    def _read_on(self) -> tuple[LogState, list[Slot]]:
        """The log as it is now. A fold is there before its boundary (rule G2), so a state that is read after the boundary is not
        below it; no slot would ever be won below one that is (rule G4).
        """
        store, layout = self.store, self.layout
        read, boundary = both(
            store, lambda: read_on(store, layout, self.state, self.unfolded), lambda: read_boundary(store, layout)
        )
        if boundary > read[0].n:  # perhaps it came after the state that was read at the same time
            read = read_state(store, layout)
            _check_boundary(boundary, read[0])
        return read

    def append(self, body: Body) -> Slot:
        """Wins the next slot in this epoch. Raises DeposedError, OutcomeUnknownError; another error has decided nothing."""
        if self.state.dropped is not None:
            raise dropped_error(self.state.dropped)
        if self.state.grace is not None and not body.IN_GRACE:
            raise grace_error(self.state.grace)
        # In another table's log the slot would stand behind a gap. Who commits has seen the table's properties unchanged, which
        # saves the request on an object store.
        if self.store.stages or not isinstance(body, Commit):
            self._there()
        slot = self._slot(body, self.state.epoch)
        if not self._win(slot):
            self._deposed = True
            raise self._deposed_error()
        return slot

    @contextlib.contextmanager
    def ending_on_failed_sync(self) -> Iterator[None]:
        """Around every write for this handle: a failed sync ends it; a second one would succeed without the data (hazard H14)."""
        try:
            yield
        except SyncFailedError as error:
            self._failed = error
            raise

    def _win(self, slot: Slot) -> bool:
        """Sends the slot and applies it. An interruption in between, Ctrl-C included, leaves the outcome unknown."""
        self._failed = OutcomeUnknownError(
            f"the request for slot {slot.n} was interrupted",
            fix="Open the table again; `commits()` tells whether the commit stands.",
        )
        sent_at = self.system.clock.monotonic()
        try:
            own_hash = win(self.store, self.layout, self.system.clock, slot)
        except ReopenTable as error:
            self._failed = error
            raise
        except TablesError:
            self._failed = None
            raise
        if own_hash is not None:
            self._owned_at = sent_at
            if isinstance(slot.body, Commit) or slot.publish or slot.replaces:
                self.unpublished.append(slot)
            self.unfolded.append(slot)
            self.state.apply(slot, own_hash)
        self._failed = None
        return own_hash is not None

    def _slot(self, body: Body, epoch: int) -> Slot:
        return Slot(self.state.n + 1, epoch, self.system.ids.token(), self.state.last_hash, body)

    def _deposed_error(self) -> DeposedError:
        tombstone = read_tombstone(self.store, self.layout)
        state = read_state(self.store, self.layout)[0] if tombstone is None else None
        if drop := (tombstone.drop if tombstone else state and state.dropped):
            error = dropped_error(drop)
            return DeposedError(error.message, fix=error.fix)
        owner = state and state.owner
        return DeposedError(
            f"{owner.describe() if owner else 'another process'} took the table over",
            fix="Nothing that was returned as committed is lost. Open the table again to write; one process at a time can.",
        )


def _check_boundary(boundary: int, state: LogState) -> None:
    """``boundary``: read before the state. Raises CorruptFileError."""
    if boundary > state.n:
        path = f"{state.layout.bounds}/{number_name(boundary)}"
        raise CorruptFileError(
            f"{path} says that slots up to {boundary} are folded, but the newest is {state.n}",
            fix="Slots were removed from outside, or that file was renamed: restore the commit log from a copy of the table.",
        )
