"""One table's commit log as this process holds it: fence, reserve, commit, offsets, bury, fold (rules T1, C2, C6, TM4, RO5, G1).

Loading and reading never write. The first write fences; a handle that lost a slot to somebody else is deposed and stays so.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from headgate_tables.commitlog.publish import (
    REVOKED,
    DataFile,
    DerivedFile,
    Usable,
    encode_derived,
    given_up,
    make_durable,
    ours_alone,
    publish,
)
from headgate_tables.commitlog.slot import STAGE_FOLDER, Kind, Slot, slot_path
from headgate_tables.commitlog.state import Holder, LogState
from headgate_tables.commitlog.tail import read_boundary, read_state
from headgate_tables.commitlog.times import TimeGenerator
from headgate_tables.commitlog.truncate import truncate, write_fold
from headgate_tables.commitlog.win import create_for_certain, win
from headgate_tables.errors import (
    DeposedError,
    MissingFileError,
    OutcomeUnknownError,
    ReopenTable,
    SyncFailedError,
    TableExistsError,
    TableOwnedError,
    TablesError,
    TransactionError,
)
from headgate_tables.storage.store import Store
from headgate_tables.system import System

ALIVE = 2
"""Round instants alive at a time (rule RO1): one filling, one committing."""
STALE_MS = 60_000
"""An unused reservation older than this is renewed before use (rule TM5)."""
FOLD_EVERY = 100
"""Slots between folds. More: a takeover reads more slots and syncs more files at once; fewer: more commits wait for a fold."""


class CommitLog:
    """The log of the table in ``store``. ``state`` is what was read or decided last. ``usable``: see ``publish``."""

    def __init__(
        self, store: Store, system: System, holder: Holder, *, take_over: bool = False, usable: Usable = ours_alone
    ) -> None:
        self.store = store
        self.state, self._unfolded = read_state(store)
        self._system = system
        self._holder = holder
        self._take_over = take_over
        self._usable = usable
        self._times: TimeGenerator | None = None
        self._deposed = False
        self._failed: ReopenTable | None = None
        self._open: list[str] = []
        self._used = ""
        self._serves = False
        self._behind: list[Slot] = []
        self._looked_for: set[str] = set()
        self._first_own = ""
        self._deleted: set[str] = set()

    @property
    def owned(self) -> bool:
        """Whether this handle holds the table, as far as it knows."""
        return self._times is not None and not self._deposed and self._failed is None

    @property
    def open_instants(self) -> Sequence[str]:
        """Instants of the transactions that are open now, oldest first."""
        return tuple(self._open)

    @property
    def unfolded(self) -> Sequence[Slot]:
        """Slots behind the newest fold."""
        return tuple(self._unfolded)

    @property
    def dead(self) -> Mapping[str, Sequence[str]]:
        """Dead instants, also those that only the next slot makes so, with the names that slots gave up for deletion."""
        return {**{instant: names or [] for instant, names in self.state.dead.items()}, **dict.fromkeys(self._given_up(), ())}

    @property
    def sweep_is_due(self) -> bool:
        """Whether nobody has looked yet for what a dead instant left behind."""
        return any(instant not in self._looked_for for instant in self.dead)

    @property
    def unsettled(self) -> Sequence[str]:
        """Dead instants of which a paused process may still leave files where readers see them (rules W2, W3).

        Not those that were looked for and began under this handle on a local disk: a round's data waits in a stage, and only its
        owner makes its files on the timeline. A plan's outputs are made under their final names, by others.
        """
        return [instant for instant, names in self.dead.items() if not self._is_settled(instant, names)]

    def _is_settled(self, instant: str, names: Sequence[str]) -> bool:
        own = self.store.stages and bool(self._first_own) and instant >= self._first_own
        return own and instant in self._looked_for and all(name.startswith(".hoodie/") for name in names)

    def own(self) -> bool:
        """Fences if this handle does not own the table yet; true the first time that this comes to its end.

        Puts in place what slots decided and nobody published (rule T6), also what an earlier call could not.
        Raises DeposedError for a handle that was deposed, TableOwnedError when a cluster holds the table, ClockError.
        """
        self.fence()
        self._catch_up()
        newly, self._serves = not self._serves, True
        return newly

    def fence(self) -> None:
        """``own`` without putting anything in place: another program may have archived or rolled back what slots decided
        (hazard H8), so that only ``adopt`` can tell what is still missing. Raises as ``own``.
        """
        self._check_alive()
        if self._times is None:
            while not self._fence():
                pass

    def check_owner(self) -> None:
        """Looks whether another process has won a slot since; one request, two on an object store. Writes nothing.

        Raises DeposedError: then the handle is finished. A handle that has not fenced has nothing to lose.
        """
        self._check_alive()
        following = self.state.n + 1
        taken = self.store.size(slot_path(following)) is not None or read_boundary(self.store) >= following
        if self._times is not None and taken:
            self._deposed = True
            raise self._deposed_error()

    def accept_future_times(self) -> str:
        """Goes on above times that are ahead of the clock, in a slot that says so, fencing first if need be.

        Returns the time from which it goes on, "" when none is ahead: then nothing was written. Raises as ``own``.
        """
        self._check_alive()
        if self._times is None:
            if TimeGenerator(self._system.clock, self.state.time).accept() is None:
                return ""
            while not self._fence(accepting=True):
                pass
            return self.state.ahead.floor if self.state.ahead is not None else ""
        ahead = self._times.accept()
        if ahead is None:
            return ""
        self._append(Kind.RESERVE, {"reserved": self._renewed(), "ahead": ahead})
        return ahead.floor

    def adopt(self, newest: str, body: Mapping[str, Any]) -> None:
        """Wins an ADOPT slot, then puts in place what it leaves of earlier ones. The handle has fenced, no transaction is open.

        ``newest``: the largest time on the timeline; all issued from here on are above it, the instants reserved now too.
        Raises ClockError (nothing was decided then), DeposedError, OutcomeUnknownError.
        """
        self._check_alive()
        times = self._issued()
        times.observe(newest)
        time = times.next()
        reserved = self._fresh()
        self._append(Kind.ADOPT, {**body, "time": time, "reserved": reserved, "min_reader": 1, "min_writer": 1})
        self._catch_up()

    def _catch_up(self) -> None:
        """What fails here is tried again before anything new is decided, so that slots are published in order (rule P1)."""
        if self._behind:
            self._revoke_stages()
        while self._behind:
            with self._ending_on_failed_sync():
                publish(self.store, self._system.clock, self._behind[0], given_up(self._unfolded), self._usable)
            del self._behind[0]

    def begin(self) -> str:
        """The instant of a new transaction. Raises TransactionError when two are open."""
        self.own()
        if len(self._open) >= ALIVE:
            raise TransactionError(
                f"{len(self._open)} transactions are open, which is all there can be",
                fix="Commit or roll back the older one before you begin another.",
            )
        if not self._open and self.state.reserved and self.age_ms(self.state.reserved[0]) > STALE_MS:
            self._append(Kind.RESERVE, {"reserved": self._fresh()})
        elif not any(self._is_unused(instant) for instant in self.state.reserved):
            self._append(Kind.RESERVE, {"reserved": self._renewed()})
        instant = next(instant for instant in self.state.reserved if self._is_unused(instant))
        self._open.append(instant)
        return instant

    def age_ms(self, instant: str) -> int:
        """How long ago the instant was issued, by the wall clock. Raises ClockError."""
        return self._issued().age_ms(instant)

    def commit(
        self,
        instant: str,
        files: Sequence[DataFile],
        derive: Callable[[str], Sequence[DerivedFile]],
        channels: Mapping[str, Sequence[Any]] | None = None,
        decided: Callable[[], None] | None = None,
    ) -> str:
        """Wins a COMMIT slot for durable ``files``, publishes it and returns the completion time.

        ``derive`` makes the derived files from the completion time. ``channels``: records that changed (see LogState).
        ``decided`` is called between the two: whatever happens then, the commit stands (rule C6).
        Raises TransactionError when an older transaction is open (rule RO2), DeposedError, OutcomeUnknownError. After any
        error that is no ReopenTable nothing was decided and the transaction is open still.
        """
        self._check_open(instant)
        if self._open[0] != instant:
            raise TransactionError(
                f"the transaction of {self._open[0]} is older and still open",
                fix="Commit or roll it back first: transactions commit in the order of their instants.",
            )
        times = self._issued()
        self._catch_up()
        completion = times.next()
        body = {
            "instant": instant,
            "completion": completion,
            "reserved": self._renewed(ending=instant),
            "files": [file.encode() for file in files],
            "channels": dict(channels or {}),
            "min_reader": 1,
            "min_writer": 1,
            "publish": encode_derived(derive(completion)),
        }
        slot = self._append(Kind.COMMIT, body)
        self._used = max(self._used, instant)
        self._open.remove(instant)
        if decided is not None:
            decided()
        self._publish_own(slot)
        return completion

    def decide(self, kind: Kind, build: Callable[[str], Mapping[str, Any]]) -> str:
        """Wins a slot of a table service and publishes what it derives.

        ``build`` makes the body from a fresh time, which is also returned: the instant of what begins, the completion time of
        what ends. The view it looks at is that of this moment: no slot is in flight (rule TM2). Open transactions stay open,
        but for RESTORE. Raises as ``commit``.
        """
        self.own()
        time = self._issued().next()
        body = build(time)
        if kind is Kind.RESTORE:
            self._used = max(self._used, *self._open, "")
            self._open.clear()
            reserved = self._fresh()
        else:
            reserved = self._renewed()
        slot = self._append(kind, {**body, "time": time, "reserved": reserved, "min_reader": 1, "min_writer": 1})
        if slot in self._behind:
            self._publish_own(slot)
        return time

    def next_time(self) -> str:
        """A time of the table's one generator (rule TM1), for a service that needs two. Raises ClockError."""
        self.own()
        return self._issued().next()

    def delete_given_up(self) -> None:
        """Deletes the files whose names slots have declared dead (rule D1); the next slot says that they are gone."""
        for key, names in self.state.deleting.items():
            if key not in self._deleted:
                # One after the other, in the slot's order: a reader of the timeline must never find a gap in it (hazard H8).
                for name in names:
                    if name.startswith(".hoodie/"):
                        self.store.delete([name])
                self.store.delete(name for name in names if not name.startswith(".hoodie/"))
                self._deleted.add(key)

    def win_offsets(self, channels: Mapping[str, Sequence[Any]], forget: Sequence[str] = ()) -> None:
        """Wins an OFFSETS slot: channel records that changed, and names of those to ``forget`` (rules RO5, CH4, CH5).

        It derives no file. Transactions that are open stay so. Raises DeposedError, OutcomeUnknownError; after any error that
        is no ReopenTable nothing was decided.
        """
        self.own()
        records = {name: list(record) for name, record in channels.items()}
        self._append(
            Kind.OFFSETS,
            {"channels": records, "forget": list(forget), "reserved": self._renewed(), "min_reader": 1, "min_writer": 1},
        )

    def bury_given_up(self) -> bool:
        """Makes the instants of abandoned transactions dead in a slot now (rules RO4, TM4); False when there are none."""
        self._check_alive()
        if not self._given_up():
            return False
        self.bury({}, ())
        return True

    def close(self) -> None:
        """Ends the handle: open transactions lapse."""
        self._failed = ReopenTable("the table was closed", fix="Open it again to write.")

    def release(self, instant: str) -> None:
        """Ends a transaction that never showed its instant to anybody; the next one may use it."""
        self._check_open(instant)
        self._open.remove(instant)

    def abandon(self, instant: str) -> None:
        """Ends a transaction without a commit: its instant is dead from the next slot on (rule TM4). Writes nothing."""
        self._check_open(instant)
        self._used = max(self._used, instant)
        self._open.remove(instant)

    def looked_for(self, instants: Iterable[str]) -> None:
        """Notes that somebody has looked for what these dead instants left behind."""
        self._looked_for.update(instants)

    def bury(self, named: Mapping[str, Sequence[str]], swept: Sequence[str]) -> None:
        """Wins a DEAD slot: ``named`` maps dead instants to names that may now be deleted, ``swept`` ones are gone (rule D1)."""
        self._append(
            Kind.DEAD, {"named": {k: list(v) for k, v in named.items()}, "swept": list(swept), "reserved": self._renewed()}
        )

    def create(self, path: str, content: bytes) -> None:
        """Creates a file that must be there before the next step, if it is not. Raises StoreUnavailableError."""
        create_for_certain(self.store, self._system.clock, path, content, durable=False)

    def fold_is_due(self) -> bool:
        """Whether ``FOLD_EVERY`` slots stand behind the newest fold."""
        return self.state.n - self.state.folded >= FOLD_EVERY

    def fold(self) -> None:
        """Makes everything published durable, then writes K(n) and advances the boundary (rules G1, G2)."""
        self._check_alive()
        self._catch_up()
        self.make_durable()
        with self._ending_on_failed_sync():
            write_fold(self.store, self._system.clock, self.state)
        self.state.folded = self.state.n
        self._unfolded = []

    def truncate(self, retire_after_ms: int) -> None:
        """Deletes slots that a fold older than ``retire_after_ms`` holds (rule G3)."""
        self._check_alive()
        truncate(self.store, self._system.clock, retire_after_ms)

    def make_durable(self) -> None:
        """Syncs everything published behind the newest fold, then removes its staged names. Raises SyncFailedError."""
        with self._ending_on_failed_sync():
            make_durable(self.store, self._unfolded)

    @contextlib.contextmanager
    def _ending_on_failed_sync(self) -> Iterator[None]:
        """Hazard H14: tried again, the same sync would succeed without the data."""
        try:
            yield
        except SyncFailedError as error:
            self._failed = error
            raise

    def _publish_own(self, slot: Slot) -> None:
        """A successor may be rolling the same slot forward: then it, not we, completes what we cannot reach (rule W2)."""
        try:
            try:
                publish(self.store, self._system.clock, slot, given_up([slot]), self._usable)
            except MissingFileError:
                if read_state(self.store)[0].epoch <= self.state.epoch:  # less: the whole table is gone
                    raise
                self._deposed = True
        except TablesError as error:
            raise OutcomeUnknownError(
                f"slot {slot.n} has decided the commit for good, but readers do not see it yet: {error.message}",
                fix="Do not send the rows again. Remove the cause; the next write to the table puts the commit in place.",
            ) from error
        self._behind.remove(slot)

    def _fence(self, *, accepting: bool = False) -> bool:
        """One try (rule T1). False: somebody else won the number; look again."""
        self.state, self._unfolded = read_state(self.store)
        holder = self.state.holder
        if holder is not None and holder.kind == "cluster" and self._holder.kind != "cluster" and not self._take_over:
            raise TableOwnedError(
                f"the table belongs to {holder.describe()}",
                fix=f"Write through it: headgate.connect({holder.address!r}). If it is gone for good, open with take_over=True.",
            )
        times = TimeGenerator(self._system.clock, self.state.time, self.state.ahead)
        ahead = times.accept() if accepting else None
        reserved = [times.next() for _ in range(ALIVE)]
        body = {"holder": self._holder.encode(), "reserved": reserved, **({"ahead": ahead} if ahead else {})}
        self._behind = list(self._unfolded)
        if not self._win(self._slot(Kind.FENCE, body, self.state.epoch + 1)):
            return False
        self._times, self._first_own = times, reserved[0]
        return True

    def _revoke_stages(self) -> None:
        """Older epochs cannot link any more (rule W2); what they won is found under the new name by ``publish``."""
        if not self.store.stages:
            return
        for folder in self.store.list_folder(STAGE_FOLDER).folders:
            if folder.isdigit() and int(folder) < self.state.epoch:
                # A fresh name: a process that does not know of us yet may have made the folder again after the last time.
                fresh = f"{folder}{REVOKED}-{self.state.epoch}-{self._system.ids.token()}"
                self.store.rename_folder(f"{STAGE_FOLDER}/{folder}", f"{STAGE_FOLDER}/{fresh}")

    def _given_up(self) -> list[str]:
        return [instant for instant in self.state.reserved if instant not in self._open and not self._is_unused(instant)]

    def _is_unused(self, instant: str) -> bool:
        """A later transaction needs a larger instant than all before it: logs are merged in that order (rule RO2)."""
        return instant > max(self._used, *self._open, "")

    def _fresh(self) -> list[str]:
        """A list of instants that nobody has used (rule TM4)."""
        return [self._issued().next() for _ in range(ALIVE)]

    def _renewed(self, ending: str = "") -> list[str]:
        """The whole list of instants alive after a slot that ends one (rule TM4)."""
        alive = [i for i in self.state.reserved if i != ending and (i in self._open or self._is_unused(i))]
        return alive + [self._issued().next() for _ in range(ALIVE - len(alive))]

    def _append(self, kind: Kind, body: Mapping[str, Any]) -> Slot:
        if deleted := sorted(self._deleted):
            body = {**body, "deleted": deleted}
        slot = self._slot(kind, body, self.state.epoch)
        if not self._win(slot):
            self._deposed = True
            raise self._deposed_error()
        self._deleted.difference_update(deleted)
        return slot

    def _win(self, slot: Slot) -> bool:
        """Sends the slot and takes it in. What ends this in between, a person's interrupt too, leaves the outcome unknown."""
        self._failed = OutcomeUnknownError(
            f"the request for slot {slot.n} was interrupted",
            fix="Open the table again; `commits()` tells whether the commit stands.",
        )
        try:
            own_hash = win(self.store, self._system.clock, slot)
        except ReopenTable as error:
            self._failed = error
            raise
        except TablesError:
            self._failed = None
            raise
        if own_hash is not None:
            if slot.kind is Kind.COMMIT or slot.body.get("publish"):
                self._behind.append(slot)
            self._unfolded.append(slot)
            self.state.apply(slot, own_hash)
        self._failed = None
        return own_hash is not None

    def _slot(self, kind: Kind, body: Mapping[str, Any], epoch: int) -> Slot:
        return Slot(self.state.n + 1, epoch, self._system.ids.token(), self.state.last_hash, kind, body)

    def _issued(self) -> TimeGenerator:
        if self._times is None:
            raise TransactionError("this handle has not fenced the table", fix="Begin a transaction first.")
        return self._times

    def _check_alive(self) -> None:
        if self._failed is not None:
            raise self._failed
        if self._deposed:
            raise self._deposed_error()

    def _check_open(self, instant: str) -> None:
        self._check_alive()
        if instant not in self._open:
            raise TransactionError(f"the transaction of {instant} has ended", fix="Begin a new one.")

    def _deposed_error(self) -> DeposedError:
        holder = read_state(self.store)[0].holder
        return DeposedError(
            f"{holder.describe() if holder else 'another process'} took the table over",
            fix="Nothing that was returned as committed is lost. Open the table again to write; one process at a time can.",
        )


def create_log(store: Store, system: System, config: Mapping[str, Any], derived: Sequence[DerivedFile]) -> None:
    """Wins slot 0 = CONFIG and publishes what it derives. Raises TableExistsError when the slot is taken."""
    time = TimeGenerator(system.clock, LogState().time).next()
    body = {**config, "time": time, "publish": encode_derived(derived)}
    first = LogState()
    slot = Slot(0, 0, system.ids.token(), first.last_hash, Kind.CONFIG, body)
    if win(store, system.clock, slot) is None:
        raise TableExistsError(f"{store.url} has a commit log already", fix="Open it with open_table, or choose another place.")
    try:
        publish(store, system.clock, slot)
    except TablesError as error:
        raise OutcomeUnknownError(
            f"slot 0 has decided the table, but its files are not in place yet: {error.message}",
            fix="Open it with open_table once the cause is removed; the first write completes it.",
        ) from error
