"""What the slots up to some number say together (rule T5): a pure fold over slots, without other inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from headgate_tables.commitlog.bodies import (
    Commit,
    Configured,
    Created,
    Dead,
    Fence,
    Offsets,
    Reserve,
)
from headgate_tables.commitlog.fields import Json
from headgate_tables.commitlog.layout import LogLayout
from headgate_tables.commitlog.records import (
    ChannelRecord,
    OwnerProcess,
    Savepoint,
    StuckRecord,
)
from headgate_tables.commitlog.service_bodies import (
    Adopt,
    Archive,
    Clean,
    PlanCancelled,
    PlanDone,
    PlanMade,
    Restore,
    SavepointMade,
    SavepointRemoved,
    ServiceBody,
    SliceSetAside,
)
from headgate_tables.commitlog.slot import GENESIS_HASH, Body, Slot
from headgate_tables.commitlog.times import TimesAhead
from headgate_tables.errors import CorruptFileError


@dataclass(slots=True)
class LogState:
    """The commit log after slot ``n``; ``n`` = -1 before any. ``layout``: where the log lies, which no slot says.

    ``commits`` maps each completed instant of the active timeline to its completion time, whatever its action; ``reserved``
    holds the checkpoint instants alive now, oldest first (rule TM4); ``dead`` the dead instants whose files are not yet known to
    be gone, each with the names that a slot gave up for deletion (rule D1), or None. ``gone`` holds the other dead ones: a paused
    process may still show one of them.
    ``config``: what the table is, in the format's keys; ``settings``: what CONFIG slots set, by key.
    ``plans``: instants of open compactions with their operations as PLAN slots have them. ``refused``: outputs of operations
    that a plan was completed without; a late compactor may still create them. ``savepoints``: by saved
    instant. ``deleting``: names that a slot gave up and
    that may still be there, under a key that a later slot's ``deleted`` removes. ``archived``: every instant up to it has left
    the active timeline. ``cleaned``: the table cannot be read any more as of times before this completion time, except at
    savepoints. ``restored``: the newest restore's instant; only when it changes do channel offsets go back (rule CH8).
    ``stuck``: file slices that cannot be compacted, by name, with the format's record of each.
    ``ahead``: an operator's decision to continue above times that are ahead of the clock.
    """

    layout: LogLayout
    n: int = -1
    last_hash: str = GENESIS_HASH
    epoch: int = 0
    time: str = "19700101000000000"
    owner: OwnerProcess | None = None
    config: dict[str, Json] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    reserved: list[str] = field(default_factory=list)
    commits: dict[str, str] = field(default_factory=dict)
    dead: dict[str, Sequence[str] | None] = field(default_factory=dict)
    gone: dict[str, None] = field(default_factory=dict)
    channels: dict[str, ChannelRecord] = field(default_factory=dict)
    plans: dict[str, Sequence[Json]] = field(default_factory=dict)
    refused: dict[str, Sequence[str]] = field(default_factory=dict)
    savepoints: dict[str, Savepoint] = field(default_factory=dict)
    deleting: dict[str, Sequence[str]] = field(default_factory=dict)
    archived: str = ""
    cleaned: str = ""
    restored: str = ""
    stuck: dict[str, StuckRecord] = field(default_factory=dict)
    ahead: TimesAhead | None = None
    folded: int = -1

    def apply(self, slot: Slot, own_hash: str) -> None:
        """Applies slot ``n + 1``. Raises CorruptFileError when it does not follow slot ``n``."""
        if slot.n != self.n + 1 or slot.prev_hash != self.last_hash:
            raise CorruptFileError(
                f"slot {slot.n} does not follow slot {self.n}: the chain of hashes is broken",
                fix=f"A slot was removed or changed from outside; restore `{self.layout.folder}` from a copy.",
            )
        body = slot.body
        for key in body.deleted or ():
            self.deleting.pop(key, None)
        self._apply(body, slot.epoch)
        if body.reserved is not None:
            self._reserve(body.reserved)
        if isinstance(body, Dead):
            self._note_dead(body)
        self.time = max(self.time, body.time or "", *(body.reserved or ()))
        self.n, self.last_hash = slot.n, own_hash

    def _apply(self, body: Body, epoch: int) -> None:
        match body:
            case Commit():
                self._commit(body)
            case Offsets():
                self._offsets(body)
            case Created():
                self.config = dict(body.config)
            case Configured():
                self.settings = body.settings
                self.config = {**self.config, **body.config} if body.config is not None else self.config
            case Fence():
                self.epoch, self.owner, self.ahead = epoch, body.owner, body.ahead or self.ahead
            case Reserve():
                self.ahead = body.ahead or self.ahead
            case Dead():
                pass  # applied after the reservations, which may make more instants dead
            case _:
                self._apply_service(body)

    def _apply_service(self, body: ServiceBody) -> None:
        match body:
            case PlanMade():
                self.plans[body.instant] = body.operations
            case PlanDone():
                self._plan_done(body)
            case PlanCancelled():
                self.plans.pop(body.instant, None)
                self.dead[body.instant] = body.names
                self._note_stuck(body)
            case Clean():
                self._clean(body)
            case SavepointMade():
                self.savepoints[body.saved] = Savepoint(body.completion, body.point, body.channels)
                self.time = max(self.time, body.completion)
            case SavepointRemoved():
                self.savepoints.pop(body.removed, None)
                self.deleting[f"savepoint {body.removed}"] = body.names
            case Restore():
                self._restore(body)
            case Archive():
                self.deleting[f"archive {body.until}"] = body.names
                self._archived_until(body.until)
            case Adopt():
                self._adopt(body)
            case SliceSetAside():
                self._slice(body)
            case _:
                assert_never(body)

    def _complete(self, instant: str, completion: str) -> None:
        self.commits[instant] = completion
        self.time = max(self.time, completion)

    def _commit(self, body: Commit) -> None:
        if body.publish:
            self._complete(body.instant, body.completion)
        else:
            self.gone[body.instant] = None  # offsets alone: nothing on the timeline will ever say that it completed (rule RO5)
            self.time = max(self.time, body.completion)
        self.channels.update(body.channels)
        if body.config is not None:
            self._redefine(body.config)

    def _redefine(self, changes: Mapping[str, Json]) -> None:
        """A new object, by which a handle notices (``Opened.refresh``)."""
        self.config = {**self.config, **changes}
        self._forget_failures()

    def _offsets(self, body: Offsets) -> None:
        self.channels.update(body.channels)
        for name in body.forget:
            self.channels.pop(name, None)

    def _plan_done(self, body: PlanDone) -> None:
        self.plans.pop(body.instant, None)
        self._complete(body.instant, body.completion)
        if body.names:
            self.refused[body.instant] = body.names
        self._note_stuck(body)

    def _note_stuck(self, body: PlanDone | PlanCancelled) -> None:
        """A plan says which slices it went on without, and which of those before it has compacted (``freed``)."""
        for name in body.freed or ():
            self.stuck.pop(name, None)
        self.stuck.update(body.stuck or {})

    def _clean(self, body: Clean) -> None:
        self._complete(body.instant, body.completion)
        self.deleting[body.instant] = body.names
        self.cleaned = max(self.cleaned, body.earliest)

    def _restore(self, body: Restore) -> None:
        """Rule CH8: offsets go back with the rows, incarnations never do."""
        for instant in body.undone:
            self.commits.pop(instant, None)
            self.savepoints.pop(instant, None)
            self.refused.pop(instant, None)
            if self.plans.pop(instant, None) is not None:
                self.dead[instant] = body.outputs.get(instant, [])
            else:
                self.gone[instant] = None
        self._complete(body.instant, body.completion)
        self.deleting[body.instant] = body.names
        self.channels = dict(body.channels)
        self.restored = body.instant
        self._redefine(body.config or {})

    def _forget_failures(self) -> None:
        """Other files now: what still cannot be compacted will fail again. What an operator has set aside stays so."""
        self.stuck = {name: entry for name, entry in self.stuck.items() if entry["aside"]}

    def _archived_until(self, until: str) -> None:
        self.archived = until
        for known in (self.commits, self.gone, self.refused):
            for instant in [instant for instant in known if instant <= until]:
                del known[instant]

    def _adopt(self, body: Adopt) -> None:
        """What another program did becomes ours (rule F1): its instants, its savepoints, the plans it left or finished, what it
        rolled back or archived, its file groups and schema. ``dead``: instants that never complete, and data that may come late.
        """
        for instant in [*body.removed, *body.dead]:
            self.commits.pop(instant, None)
            self.plans.pop(instant, None)
            self.refused.pop(instant, None)
        self.gone.update(dict.fromkeys(body.removed))
        self.dead.update(body.dead)
        for instant in body.completed:
            for known in (self.plans, self.dead, self.gone):
                known.pop(instant, None)
        self.commits.update(body.completed)
        self.plans.update(body.plans)
        self.refused.update(body.refused)
        for instant in body.unsaved:
            self.savepoints.pop(instant, None)
        self.savepoints.update(body.savepoints)
        # Data first: a file whose instant has left the timeline would pass for an archived one (hazard H9).
        for first in (True, False):
            names = [name for name in body.names if self.layout.is_data(name) is first]
            if names:
                self.deleting[f"adopt {body.time} {'data' if first else 'timeline'}"] = names
        self._redefine(body.config)
        self._archived_until(max(self.archived, body.archived))
        self.cleaned = max(self.cleaned, body.cleaned)

    def _slice(self, body: SliceSetAside) -> None:
        """An operator has set a file slice aside, or taken it in again."""
        if body.entry is None:
            self.stuck.pop(body.name, None)
        else:
            self.stuck[body.name] = body.entry

    def _reserve(self, reserved: Sequence[str]) -> None:
        """Rule TM4: an instant that was reserved, is no longer, and has not committed is dead from this slot on."""
        ended = (instant for instant in self.reserved if instant not in reserved)
        self.dead.update({instant: None for instant in ended if instant not in self.commits and instant not in self.gone})
        self.reserved = list(reserved)

    def _note_dead(self, body: Dead) -> None:
        for instant, names in body.named.items():
            self.gone.pop(instant, None)
            self.dead[instant] = [*(self.dead.get(instant) or ()), *names]
        for instant in body.swept:
            self.dead.pop(instant, None)
            self.gone[instant] = None

    def has_reserved(self, instant: str) -> bool:
        """Whether a slot reserved this instant; any other is a foreign writer's (rule F1)."""
        known = (self.commits, self.reserved, self.dead, self.gone, self.plans)
        return instant <= self.archived or any(instant in each for each in known)

    def has_completed(self, instant: str, action: str, completion: str) -> bool:
        """Whether a slot decided this completion of the instant; True for every archived one, of which the log knows no more."""
        if action == "savepoint":
            return instant in self.savepoints and self.savepoints[instant].completion == completion
        return instant <= self.archived or self.commits.get(instant) == completion
