"""What the slots up to some number say together (rule T5): a pure fold over slots, nothing else goes in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate_tables.commitlog.layout import LogLayout
from headgate_tables.commitlog.slot import GENESIS_HASH, Kind, Slot
from headgate_tables.commitlog.times import Ahead
from headgate_tables.errors import CorruptFileError


@dataclass(frozen=True, slots=True)
class Holder:
    """Who won the newest FENCE: a ``library`` process or a ``cluster`` (its address is where to connect)."""

    kind: str
    host: str
    pid: int
    address: str = ""

    def describe(self) -> str:
        """For messages."""
        return f"the cluster at {self.address}" if self.kind == "cluster" else f"process {self.pid} on {self.host}"

    def encode(self) -> dict[str, Any]:
        """As it stands in a FENCE slot."""
        return {"kind": self.kind, "host": self.host, "pid": self.pid, "address": self.address}


@dataclass(slots=True)
class LogState:
    """The commit log after slot ``n``; ``n`` = -1 before any. No slot says the ``layout``.

    ``commits`` maps each completed instant of the active timeline to its completion time, whatever its action; ``reserved``
    holds the checkpoint instants alive now, oldest first (rule TM4); ``dead`` the dead instants whose files are not yet known to
    be gone, each with the names that a slot gave up for deletion (rule D1), or None. ``gone`` holds the other dead ones: a paused
    process may still show one of them.
    ``channels`` maps a channel's name to [incarnation, committed offset, principal, time] (rules CH4, CH5).
    ``plans``: instants of open compactions with their operations as PLAN slots have them. ``refused``: outputs of operations
    that a plan was completed without; a late compactor may still create them. ``savepoints``: saved instants with
    {completion of the savepoint, point = completion of what it saves, channels}. ``deleting``: names that a slot gave up and
    that may still be there, under a key that a later slot's ``deleted`` takes out. ``archived``: every instant up to it has left
    the active timeline. ``cleaned``: what the table was before this completion time cannot be read any more, savepoints
    excepted. ``restored``: the newest restore's instant; only when it changes do channel offsets go back (rule CH8).
    ``stuck``: file slices that cannot be compacted, by name, with what the format keeps of each.
    ``ahead``: from where the table goes on though its times are in the future.
    """

    layout: LogLayout
    n: int = -1
    last_hash: str = GENESIS_HASH
    epoch: int = 0
    time: str = "19700101000000000"
    holder: Holder | None = None
    config: dict[str, Any] = field(default_factory=dict)
    reserved: list[str] = field(default_factory=list)
    commits: dict[str, str] = field(default_factory=dict)
    dead: dict[str, list[str] | None] = field(default_factory=dict)
    gone: dict[str, None] = field(default_factory=dict)
    channels: dict[str, list[Any]] = field(default_factory=dict)
    plans: dict[str, list[Any]] = field(default_factory=dict)
    refused: dict[str, list[str]] = field(default_factory=dict)
    savepoints: dict[str, dict[str, Any]] = field(default_factory=dict)
    deleting: dict[str, list[str]] = field(default_factory=dict)
    archived: str = ""
    cleaned: str = ""
    restored: str = ""
    stuck: dict[str, dict[str, Any]] = field(default_factory=dict)
    ahead: Ahead | None = None
    folded: int = -1

    def apply(self, slot: Slot, own_hash: str) -> None:
        """Takes slot ``n + 1`` in. Raises CorruptFileError when it does not follow slot ``n``."""
        if slot.n != self.n + 1 or slot.prev_hash != self.last_hash:
            raise CorruptFileError(
                f"slot {slot.n} does not follow slot {self.n}: the chain of hashes is broken",
                fix=f"A slot was removed or changed from outside; restore `{self.layout.folder}` from a copy.",
            )
        body = slot.body
        for key in body.get("deleted", ()):
            self.deleting.pop(key, None)
        if slot.kind is Kind.FENCE:
            self.epoch = slot.epoch
            self.holder = Holder(**body["holder"])
        elif slot.kind in _APPLY:
            _APPLY[slot.kind](self, body)
        if "ahead" in body:
            self.ahead = Ahead(*body["ahead"])
        if "reserved" in body:
            self._reserve(body["reserved"])
        if slot.kind is Kind.DEAD:
            self._bury(body["named"], body["swept"])
        self.time = max([self.time, body.get("time", ""), body.get("completion", ""), *body.get("reserved", [])])
        self.n, self.last_hash = slot.n, own_hash

    def _configure(self, body: Mapping[str, Any]) -> None:
        """Slot 0 says what the table is, later ones change its settings."""
        self.config = dict(body) if not self.config else {**self.config, "settings": body["settings"]}

    def _commit(self, body: Mapping[str, Any]) -> None:
        if body["publish"]:
            self.commits[body["instant"]] = body["completion"]
        else:
            self.gone[body["instant"]] = None  # offsets alone: nothing on the timeline will ever say that it completed (rule RO5)
        self.channels.update(body.get("channels", {}))

    def _offsets(self, body: Mapping[str, Any]) -> None:
        self.channels.update(body["channels"])
        for name in body["forget"]:
            self.channels.pop(name, None)

    def _plan(self, body: Mapping[str, Any]) -> None:
        self.plans[body["instant"]] = body["operations"]

    def _plan_done(self, body: Mapping[str, Any]) -> None:
        instant = body["instant"]
        self.plans.pop(instant, None)
        self.commits[instant] = body["completion"]
        if body["names"]:
            self.refused[instant] = body["names"]
        self._note_stuck(body)

    def _plan_cancelled(self, body: Mapping[str, Any]) -> None:
        self.plans.pop(body["instant"], None)
        self.dead[body["instant"]] = body["names"]
        self._note_stuck(body)

    def _note_stuck(self, body: Mapping[str, Any]) -> None:
        """A plan says which slices it went on without, and which of those before it has compacted (``freed``)."""
        for name in body.get("freed", ()):
            self.stuck.pop(name, None)
        self.stuck.update(body.get("stuck", {}))

    def _clean(self, body: Mapping[str, Any]) -> None:
        self.commits[body["instant"]] = body["completion"]
        self.deleting[body["instant"]] = body["names"]
        self.cleaned = max(self.cleaned, body["earliest"])

    def _savepoint(self, body: Mapping[str, Any]) -> None:
        if "removed" in body:
            self.savepoints.pop(body["removed"], None)
            self.deleting[f"savepoint {body['removed']}"] = body["names"]
        else:
            self.savepoints[body["saved"]] = {key: body[key] for key in ("completion", "point", "channels")}

    def _restore(self, body: Mapping[str, Any]) -> None:
        """Rule CH8: offsets go back with the rows, incarnations never do."""
        for instant in body["undone"]:
            self.commits.pop(instant, None)
            self.savepoints.pop(instant, None)
            self.refused.pop(instant, None)
            if self.plans.pop(instant, None) is not None:
                self.dead[instant] = body["outputs"].get(instant, [])
            else:
                self.gone[instant] = None
        self.commits[body["instant"]] = body["completion"]
        self.deleting[body["instant"]] = body["names"]
        self.channels = dict(body["channels"])
        self.restored = body["instant"]
        self._forget_failures()

    def _forget_failures(self) -> None:
        """Files are others now: what cannot be compacted still says so again. What an operator has set aside stays so."""
        self.stuck = {name: entry for name, entry in self.stuck.items() if entry["aside"]}

    def _archive(self, body: Mapping[str, Any]) -> None:
        self.deleting[f"archive {body['until']}"] = body["names"]
        self._archived_until(body["until"])

    def _archived_until(self, until: str) -> None:
        self.archived = until
        for known in (self.commits, self.gone, self.refused):
            for instant in [instant for instant in known if instant <= until]:
                del known[instant]

    def _adopt(self, body: Mapping[str, Any]) -> None:
        """What another program did becomes ours (rule F1): its instants, its savepoints, the plans it left or finished, what it
        rolled back or archived, its file groups and schema. ``dead``: instants that never complete, and data that may come late.
        """
        for instant in [*body["removed"], *body["dead"]]:
            self.commits.pop(instant, None)
            self.plans.pop(instant, None)
            self.refused.pop(instant, None)
        self.gone.update(dict.fromkeys(body["removed"]))
        self.dead.update(body["dead"])
        for instant in body["completed"]:
            for known in (self.plans, self.dead, self.gone):
                known.pop(instant, None)
        self.commits.update(body["completed"])
        self.plans.update(body["plans"])
        self.refused.update(body["refused"])
        for instant in body["unsaved"]:
            self.savepoints.pop(instant, None)
        self.savepoints.update(body["savepoints"])
        # Data first: a file whose instant has left the timeline would pass for an archived one (hazard H9).
        for first in (True, False):
            names = [name for name in body["names"] if self.layout.is_data(name) is first]
            if names:
                self.deleting[f"adopt {body['time']} {'data' if first else 'timeline'}"] = names
        self.config = {**self.config, **body["config"]}
        self._archived_until(max(self.archived, body["archived"]))
        self.cleaned = max(self.cleaned, body["cleaned"])
        self._forget_failures()

    def _slice(self, body: Mapping[str, Any]) -> None:
        """An operator has set a file slice aside, or taken it in again."""
        if body["entry"] is None:
            self.stuck.pop(body["name"], None)
        else:
            self.stuck[body["name"]] = body["entry"]

    def _reserve(self, reserved: list[str]) -> None:
        """Rule TM4: reserved before, not any more, not committed: dead from this slot on."""
        ended = (instant for instant in self.reserved if instant not in reserved)
        self.dead.update({instant: None for instant in ended if instant not in self.commits and instant not in self.gone})
        self.reserved = list(reserved)

    def _bury(self, named: Mapping[str, list[str]], swept: list[str]) -> None:
        for instant, names in named.items():
            self.gone.pop(instant, None)
            self.dead[instant] = [*(self.dead.get(instant) or ()), *names]
        for instant in swept:
            self.dead.pop(instant, None)
            self.gone[instant] = None

    def knows(self, instant: str) -> bool:
        """Whether a slot reserved this instant; one that none did is a foreign writer's (rule F1)."""
        known = (self.commits, self.reserved, self.dead, self.gone, self.plans)
        return instant <= self.archived or any(instant in each for each in known)

    def decided(self, instant: str, action: str, completion: str) -> bool:
        """Whether a slot decided that the instant completed so; of the archived ones nothing is known any more."""
        if action == "savepoint":
            return instant in self.savepoints and self.savepoints[instant]["completion"] == completion
        return instant <= self.archived or self.commits.get(instant) == completion

    @property
    def settings(self) -> Mapping[str, str]:
        """What CONFIG slots set, by key."""
        found: Mapping[str, str] = self.config.get("settings", {})
        return found

    def encode(self) -> dict[str, Any]:
        """The whole state, as a fold holds it."""
        return {
            "n": self.n,
            "last_hash": self.last_hash,
            "epoch": self.epoch,
            "time": self.time,
            "holder": self.holder.encode() if self.holder else None,
            "config": self.config,
            "reserved": self.reserved,
            "commits": self.commits,
            "dead": self.dead,
            "gone": list(self.gone),
            **{key: getattr(self, key) for key in _AS_THEY_ARE},
            "stuck": self.stuck,
            "ahead": self.ahead,
        }

    @classmethod
    def decode(cls, content: Mapping[str, Any], layout: LogLayout) -> "LogState":
        """A fold's state."""
        holder = content["holder"]
        fields = {key: content[key] for key in ("n", "last_hash", "epoch", "time", "config", "reserved", "commits", "dead")}
        fields |= {key: content[key] for key in _AS_THEY_ARE} | {"stuck": content.get("stuck", {})}  # younger than format 1
        gone = dict.fromkeys(content["gone"])
        ahead = Ahead(*content["ahead"]) if content.get("ahead") else None  # younger than format 1
        return cls(layout, holder=Holder(**holder) if holder else None, gone=gone, ahead=ahead, folded=content["n"], **fields)


_AS_THEY_ARE = ("channels", "plans", "refused", "savepoints", "deleting", "archived", "cleaned", "restored")

_APPLY: Mapping[Kind, Callable[[LogState, Mapping[str, Any]], None]] = {
    Kind.CONFIG: LogState._configure,
    Kind.COMMIT: LogState._commit,
    Kind.OFFSETS: LogState._offsets,
    Kind.PLAN: LogState._plan,
    Kind.PLAN_DONE: LogState._plan_done,
    Kind.PLAN_CANCELLED: LogState._plan_cancelled,
    Kind.CLEAN: LogState._clean,
    Kind.SAVEPOINT: LogState._savepoint,
    Kind.RESTORE: LogState._restore,
    Kind.ARCHIVE: LogState._archive,
    Kind.ADOPT: LogState._adopt,
    Kind.SLICE: LogState._slice,
}
