"""Which processes have a part in which checkpoint, as far as a bucket side knows: nobody else may send it frames (rule EX7)."""

import asyncio
from typing import Final

from headgate_runtime.logs import get_logger
from headgate_writer.attached import Membership
from headgate_writer.windows import ExchangeError

_log = get_logger()

_KEPT: Final = 3
"""Memberships that are kept: of the checkpoint that fills, of the one before it, and of one that is decided, whose late frames
are its members' mistake (rule EX2)."""


class KnownMembers:
    """Of one bucket side, which runs in ``process``."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._members: dict[int, frozenset[str]] = {}
        self._closed = False
        self._warned = False
        self._changed = asyncio.Event()

    def add_membership(self, membership: Membership) -> None:
        """Adds the members of a checkpoint; nobody has frames for a process that has no part in it."""
        sends = membership.index(self._process) is not None
        self._members[membership.checkpoint] = frozenset(each.process for each in membership.members if sends)
        for number in sorted(self._members)[:-_KEPT]:
            del self._members[number]
        self._wake()

    def close(self) -> None:
        """Nobody waits any longer."""
        self._closed = True
        self._wake()

    async def check_sender(self, sender: str, checkpoint: int) -> None:
        """Returns when that process may send frames of that checkpoint, or after ``close``.

        The exchange can be faster than the owner, so a frame of the next checkpoint waits until its members are known. No
        member is further ahead: the barrier of that checkpoint waits for this bucket side (rule RO1). Raises ExchangeError.
        """
        while checkpoint == self._youngest + 1 and not self._closed:
            await self._changed.wait()
        if not self._closed and sender not in self._members_of(checkpoint):
            if not self._warned:  # once a generation: a stranger can send thousands a second
                _log.warning("frames of a process that has no part in the checkpoint are refused", sender=sender)
            self._warned = True
            raise ExchangeError(f"process {sender} has no part in checkpoint {checkpoint} of the table")

    @property
    def _youngest(self) -> int:
        return max(self._members, default=0)

    def _members_of(self, checkpoint: int) -> frozenset[str]:
        """Of a checkpoint that is long over: those of the oldest one that is known."""
        return self._members.get(max(checkpoint, min(self._members, default=0)), frozenset())

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
