"""One table's commit log as this process holds it: fence, begin, commit, decide, fold (rules C2, C6, TM4, RO5, G1).

Its parts are modules of their own: ``claim`` (who may append), ``reservations`` (instants of transactions), ``unpublished``
(files of slots that were won) and ``dead_names`` (files that must go).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from types import MappingProxyType

from headgate_tables.commitlog.bodies import Commit, Configured, Dead, Offsets, Reserve, ServiceBody
from headgate_tables.commitlog.claim import Claim
from headgate_tables.commitlog.dead_names import DeadNames
from headgate_tables.commitlog.fields import Json
from headgate_tables.commitlog.log_format import LogFormat
from headgate_tables.commitlog.publish import Usable, ours_alone
from headgate_tables.commitlog.records import Channels, DataFile, DerivedFile, OwnerProcess, encode_derived
from headgate_tables.commitlog.reservations import Reservations
from headgate_tables.commitlog.slot import FORMAT, Body, Slot
from headgate_tables.commitlog.state import LogState
from headgate_tables.commitlog.times import TimeGenerator
from headgate_tables.commitlog.truncate import truncate, write_fold
from headgate_tables.commitlog.unpublished import Unpublished
from headgate_tables.commitlog.win import create_for_certain, unchecked
from headgate_tables.errors import ReopenTable
from headgate_tables.storage.store import Store
from headgate_tables.system import System

FOLD_EVERY = 100
"""Slots between folds. More: a takeover reads more slots and syncs more files at once; fewer: more commits wait for a fold."""

HANDED_OVER = 8
"""As ``FOLD_EVERY``, for an owner that leaves an object store: its successor asks for each slot while rows wait; a fold is two
requests."""


class CommitLog:
    """The log of the table in ``store``. Loading it writes nothing; the first write fences.

    ``usable``: see ``publish``. ``there``: see ``Claim``. ``dead_names``: files that must go.
    """

    def __init__(
        self,
        store: Store,
        layout: LogFormat,
        system: System,
        owner: OwnerProcess,
        *,
        take_over: bool = False,
        usable: Usable = ours_alone,
        there: Callable[[], None] = unchecked,
    ) -> None:
        self.store, self.layout = store, layout
        self._system = system
        self._claim = Claim(store, layout, system, owner, take_over=take_over, there=there)
        self._reservations = Reservations(self._claim)
        self._unpublished = Unpublished(self._claim, usable)
        self.dead_names = DeadNames(self._claim, self._reservations)
        self._serves = False

    @property
    def state(self) -> LogState:
        """The log after the newest slot that this handle has read or won."""
        return self._claim.state

    @property
    def owned(self) -> bool:
        """Whether this handle holds the table, as far as it knows."""
        return self._claim.holds

    @property
    def open_instants(self) -> Sequence[str]:
        """Instants of the transactions that are open now, oldest first."""
        return self._reservations.open

    @property
    def unfolded(self) -> Sequence[Slot]:
        """Slots after the newest fold."""
        return tuple(self._claim.unfolded)

    def own(self, *, after_epoch: int = 0) -> bool:
        """Fences above ``after_epoch`` if this handle does not own the table yet; returns True the first time that it completes.

        Publishes what won slots decided and nobody has published (rule T6), including what an earlier call failed to publish.
        Raises DeposedError for a handle that was deposed, TableOwnedError when a cluster owns the table, ClockError.
        """
        self.fence(after_epoch=after_epoch)
        self._unpublished.catch_up()
        newly, self._serves = not self._serves, True
        return newly

    def fence(self, *, after_epoch: int = 0) -> None:
        """``own`` without publishing: another program may have archived or rolled back what slots decided (hazard H8), so only
        ``adopt`` can find out what is still missing. Raises as ``own``.
        """
        self._claim.check()
        if not self._claim.fenced:
            self._claim.fence(after_epoch=after_epoch)

    def check_owner(self) -> None:
        """Checks whether another process has won a slot since; one request, two on an object store. Writes nothing.

        Raises DeposedError, after which the handle is finished. A handle that has not fenced has nothing to lose.
        """
        self._claim.check_owner()

    def accept_future_times(self) -> str:
        """Continues above times that are ahead of the clock, and records that in a slot; fences first if necessary.

        Returns the time from which it continues, "" when none is ahead: then nothing was written. Raises as ``own``.
        """
        self._claim.check()
        if not self._claim.fenced:
            if TimeGenerator(self._system.clock, self.state.time).accept_ahead() is None:
                return ""
            self._claim.fence(accepting=True)
            return self.state.ahead.floor if self.state.ahead is not None else ""
        ahead = self._claim.times.accept_ahead()
        if ahead is None:
            return ""
        self._append(Reserve(reserved=self._reservations.renewed(), ahead=ahead))
        return ahead.floor

    def adopt(self, newest: str, body: ServiceBody) -> None:
        """Wins an ADOPT slot, then publishes what it leaves of earlier ones. The handle has fenced, and no transaction is open.

        ``newest``: the largest time on the timeline; all issued from here on are above it, the instants reserved now too.
        Raises ClockError (nothing was decided then), DeposedError, OutcomeUnknownError.
        """
        self._claim.check()
        times = self._claim.times
        times.observe(newest)
        time = times.next()
        reserved = self._reservations.fresh()
        self._append(replace(body, time=time, reserved=reserved, min_reader=FORMAT, min_writer=FORMAT))
        self._unpublished.catch_up()

    def begin(self) -> str:
        """Begins a transaction and returns its instant. Raises TransactionError when two are open."""
        self.own()
        self._reservations.check_room()
        if self._reservations.are_stale:
            self._append(Reserve(reserved=self._reservations.fresh()))
        elif self._reservations.are_used_up:
            self._append(Reserve(reserved=self._reservations.renewed()))
        return self._reservations.give_out()

    def age_ms(self, instant: str) -> int:
        """How long ago the instant was issued, by the wall clock. Raises ClockError."""
        return self._claim.times.age_ms(instant)

    def commit(
        self,
        instant: str,
        files: Sequence[DataFile],
        derive: Callable[[str], Sequence[DerivedFile]],
        channels: Channels | None = None,
        on_durable: Callable[[], None] | None = None,
        config: Mapping[str, Json] | None = None,
        there: Mapping[str, int] = MappingProxyType({}),
    ) -> str:
        """Wins a COMMIT slot for durable ``files``, publishes it and returns the completion time.

        ``derive`` makes the derived files from the completion time. ``channels``, ``config``: what changed (see LogState).
        ``on_durable`` is called between winning and publishing: from then on the commit stands, whatever happens (rule C6).
        ``there``: sizes of derived files that were listed a moment ago, and are not looked at again.
        Raises TransactionError when an older transaction is open (rule RO2), DeposedError, OutcomeUnknownError. After any
        other error than a ReopenTable nothing was decided, and the transaction is still open.
        """
        self._reservations.check_open(instant)
        self._reservations.check_oldest(instant)
        times = self._claim.times
        self._unpublished.catch_up()
        completion = times.next()
        body = Commit(
            instant=instant,
            completion=completion,
            reserved=self._reservations.renewed(ending=instant),
            files=files,
            channels=channels or {},
            min_reader=FORMAT,
            min_writer=FORMAT,
            publish=encode_derived(derive(completion)),
            config=config,
        )
        slot = self._append(body)
        self._reservations.end(instant)
        if on_durable is not None:
            on_durable()
        self._unpublished.publish_own(slot, there)
        return completion

    def decide(self, build: Callable[[str], ServiceBody | Configured]) -> str:
        """Wins a slot of a table service and publishes what it derives.

        ``build`` makes the body from a fresh time, which is also returned: the instant of an action that begins, the completion
        time of one that ends. No slot is in flight meanwhile, so ``build`` sees the current view (rule TM2). Open transactions
        stay open, unless the body ends them. Raises as ``commit``.
        """
        self.own()
        time = self._claim.times.next()
        body = build(time)
        if body.ENDS_TRANSACTIONS:
            self._reservations.end_all()
            reserved = self._reservations.fresh()
        else:
            reserved = self._reservations.renewed()
        slot = self._append(replace(body, time=time, reserved=reserved, min_reader=FORMAT, min_writer=FORMAT))
        if slot in self._claim.unpublished:
            self._unpublished.publish_own(slot)
        return time

    def win_end(self, body: ServiceBody) -> None:
        """Wins a slot that ends the table, for good or for a grace time, or brings it back (rules D5, D9). Publishes nothing.

        Raises TableDroppedError when the table was dropped before, DeposedError, OutcomeUnknownError, and as ``fence``.
        """
        self.fence()
        time = self._claim.times.next()
        self._reservations.end_all()
        self._append(replace(body, time=time, reserved=[], min_reader=FORMAT, min_writer=FORMAT))

    def next_time(self) -> str:
        """A time of the table's one generator (rule TM1), for a service that needs two. Raises ClockError."""
        self.own()
        return self._claim.times.next()

    def win_offsets(self, channels: Channels, forget: Sequence[str] = (), on_durable: Callable[[], None] | None = None) -> None:
        """Wins an OFFSETS slot: channel records that changed, and names of those to ``forget`` (rules RO5, CH4, CH5).
        ``on_durable`` is called when it is won.

        It derives no file, and open transactions stay open. Raises DeposedError, OutcomeUnknownError; after any other error
        than a ReopenTable nothing was decided.
        """
        self.own()
        reserved = self._reservations.renewed()
        self._append(Offsets(channels=channels, forget=forget, reserved=reserved, min_reader=FORMAT, min_writer=FORMAT))
        if on_durable is not None:
            on_durable()

    def close(self) -> None:
        """Ends the handle: open transactions lapse."""
        self._claim.end(ReopenTable("the table was closed", fix="Open it again to write."))

    def release(self, instant: str) -> None:
        """Ends a transaction whose instant nobody has seen; the next transaction may use it."""
        self._reservations.check_open(instant)
        self._reservations.take_back(instant)

    def abandon(self, instant: str) -> None:
        """Ends a transaction without a commit: its instant is dead from the next slot on (rule TM4). Writes nothing."""
        self._reservations.check_open(instant)
        self._reservations.end(instant)

    def win_dead(self, named: Mapping[str, Sequence[str]], swept: Sequence[str]) -> None:
        """Wins a DEAD slot: ``named`` maps dead instants to names that may now be deleted; the files of ``swept`` ones are gone
        (rule D1).
        """
        self._append(Dead(named=named, swept=swept, reserved=self._reservations.renewed()))

    def create(self, path: str, content: bytes) -> None:
        """Creates a file that the next step needs, unless it exists. Raises StoreUnavailableError, DeposedError."""
        with self.ending_on_failed_sync():
            create_for_certain(
                self.store, self._system.clock, path, content, durable=False, check_owner=self._claim.check_owner_if_late
            )

    def fold_is_due(self, *, leaving: bool = False) -> bool:
        """Whether ``FOLD_EVERY`` slots stand after the newest fold, or ``HANDED_OVER`` when another process owns it next."""
        return self.state.n - self.state.folded >= (HANDED_OVER if leaving else FOLD_EVERY)

    def fold(self) -> None:
        """Makes everything published durable, then writes fold K(n) and advances the boundary (rules G1, G2)."""
        self._claim.check_there()
        self._unpublished.catch_up()
        self._unpublished.make_durable()
        with self.ending_on_failed_sync():
            write_fold(self.store, self._system.clock, self.state)
        self.state.folded = self.state.n
        self._claim.unfolded.clear()

    def truncate(self, retire_after_ms: int) -> None:
        """Deletes slots that a fold older than ``retire_after_ms`` holds (rule G3)."""
        self._claim.check()
        truncate(self.store, self.layout, self._system.clock, retire_after_ms)

    def make_durable(self) -> None:
        """Syncs everything published after the newest fold, then removes its staged names. Raises SyncFailedError."""
        self._unpublished.make_durable()

    def ending_on_failed_sync(self) -> AbstractContextManager[None]:
        """The context of every write for this handle: a SyncFailedError ends the handle (hazard H14)."""
        return self._claim.ending_on_failed_sync()

    def _append(self, body: Body) -> Slot:
        slot = self._claim.append(self.dead_names.with_deleted(body))
        self.dead_names.note_recorded(slot.body)
        return slot
