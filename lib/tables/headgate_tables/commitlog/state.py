"""What the slots up to some number say together (rule T5): a pure fold over slots, nothing else goes in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate_tables.commitlog.slot import GENESIS_HASH, Kind, Slot
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
    """The commit log after slot ``n``; ``n`` = -1 before any.

    ``commits`` maps instant to completion time; ``reserved`` holds the round instants alive now, oldest first (rule TM4);
    ``dead`` the dead instants whose files are not yet known to be gone, each with the names that a slot gave up for
    deletion (rule D1), or None. ``gone`` holds the other dead ones: a paused process may still show one of them.
    ``channels`` maps a channel's name to [incarnation, committed offset, principal, time] (rules CH4, CH5).
    """

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
    folded: int = -1

    def apply(self, slot: Slot, own_hash: str) -> None:
        """Takes slot ``n + 1`` in. Raises CorruptFileError when it does not follow slot ``n``."""
        if slot.n != self.n + 1 or slot.prev_hash != self.last_hash:
            raise CorruptFileError(
                f"slot {slot.n} does not follow slot {self.n}: the chain of hashes is broken",
                fix="A slot was removed or changed from outside; restore `.hoodie/.headgate` from a copy.",
            )
        body = slot.body
        if slot.kind is Kind.CONFIG:
            self.config = dict(body)
        elif slot.kind is Kind.FENCE:
            self.epoch = slot.epoch
            self.holder = Holder(**body["holder"])
        elif slot.kind is Kind.COMMIT:
            self.commits[body["instant"]] = body["completion"]
            self.channels.update(body.get("channels", {}))
        elif slot.kind is Kind.OFFSETS:
            self.channels.update(body["channels"])
            for name in body["forget"]:
                self.channels.pop(name, None)
        if "reserved" in body:
            self._reserve(body["reserved"])
        if slot.kind is Kind.DEAD:
            self._bury(body["named"], body["swept"])
        self.time = max([self.time, body.get("time", ""), body.get("completion", ""), *body.get("reserved", [])])
        self.n, self.last_hash = slot.n, own_hash

    def _reserve(self, reserved: list[str]) -> None:
        """Rule TM4: reserved before, not any more, not committed: dead from this slot on."""
        self.dead.update({instant: None for instant in self.reserved if instant not in reserved and instant not in self.commits})
        self.reserved = list(reserved)

    def _bury(self, named: Mapping[str, list[str]], swept: list[str]) -> None:
        for instant, names in named.items():
            self.gone.pop(instant, None)
            self.dead[instant] = [*(self.dead.get(instant) or ()), *names]
        for instant in swept:
            self.dead.pop(instant, None)
            self.gone[instant] = None

    def knows(self, instant: str) -> bool:
        """Whether a slot reserved this instant; one that none did is a foreign writer's (rule F)."""
        return instant in self.commits or instant in self.reserved or instant in self.dead or instant in self.gone

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
            "channels": self.channels,
        }

    @classmethod
    def decode(cls, content: Mapping[str, Any]) -> "LogState":
        """A fold's state."""
        holder = content["holder"]
        fields = {
            key: content[key] for key in ("n", "last_hash", "epoch", "time", "config", "reserved", "commits", "dead", "channels")
        }
        gone = dict.fromkeys(content["gone"])
        return cls(holder=Holder(**holder) if holder else None, gone=gone, folded=content["n"], **fields)
