"""What the slots up to some number say together (rule T5): a pure fold over slots, without other inputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from headgate_tables.commitlog.bodies import Commit, Configured, Created, Dead, Fence, Offsets, Reserve, ServiceBody
from headgate_tables.commitlog.facts import LogFacts
from headgate_tables.commitlog.slot import Body, Slot
from headgate_tables.errors import CorruptFileError


@dataclass(slots=True)
class LogState(LogFacts):
    """The facts after slot ``n``, which the next slot changes."""

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
                self.config, self.epoch = dict(body.config), epoch
            case Configured():
                self.settings = body.settings
                self.config = {**self.config, **body.config} if body.config is not None else self.config
            case Fence():
                self.epoch, self.owner, self.ahead = epoch, body.owner, body.ahead or self.ahead
            case Reserve():
                self.ahead = body.ahead or self.ahead
            case Dead():
                pass  # applied after the reservations, which may make more instants dead
            case ServiceBody():
                body.apply(self)
            case _:
                assert_never(body)

    def _commit(self, body: Commit) -> None:
        if body.publish:
            self.complete(body.instant, body.completion)
        else:
            self.gone[body.instant] = None  # offsets alone: nothing on the timeline will ever say that it completed (rule RO5)
            self.time = max(self.time, body.completion)
        self.channels.update(body.channels)
        if body.config is not None:
            self.keep_in_savepoints(body.config)
            self.redefine(body.config)

    def _offsets(self, body: Offsets) -> None:
        self.channels.update(body.channels)
        for name in body.forget:
            self.channels.pop(name, None)

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
