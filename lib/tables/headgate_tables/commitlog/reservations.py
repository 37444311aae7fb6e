"""The instants that one handle gives out, oldest first, each to one transaction (rules RO1, RO2, TM1, TM4, TM5). Writes nothing.

Slots reserve instants before they are used. One that was given out and did not commit is dead from the next slot on.
"""

from collections.abc import Sequence

from headgate_tables.commitlog.claim import LIVE_INSTANTS, Claim
from headgate_tables.errors import TransactionError

STALE_MS = 60_000
"""An unused reservation older than this is renewed before use (rule TM5)."""


class Reservations:
    """The reservations of the handle with ``claim``."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._open: list[str] = []
        self._used = ""

    @property
    def open(self) -> Sequence[str]:
        """Instants of the transactions that are open now, oldest first."""
        return tuple(self._open)

    @property
    def given_up(self) -> Sequence[str]:
        """Reserved instants that no transaction has any more: the next slot makes them dead."""
        return [instant for instant in self._reserved if instant not in self._open and not self._is_unused(instant)]

    @property
    def are_stale(self) -> bool:
        """Whether all are unused and too old for a new transaction (rule TM5). Raises ClockError."""
        return not self._open and bool(self._reserved) and self._claim.times.age_ms(self._reserved[0]) > STALE_MS

    @property
    def are_used_up(self) -> bool:
        """Whether the next transaction needs another instant first."""
        return not any(self._is_unused(instant) for instant in self._reserved)

    def check_room(self) -> None:
        """Raises TransactionError when no more transactions may be open."""
        if len(self._open) >= LIVE_INSTANTS:
            raise TransactionError(
                f"{len(self._open)} transactions are open, which is all there can be",
                fix="Commit or roll back the older one before you begin another.",
            )

    def give_out(self) -> str:
        """The oldest unused instant; its transaction is open from now on."""
        instant = next(instant for instant in self._reserved if self._is_unused(instant))
        self._open.append(instant)
        return instant

    def check_open(self, instant: str) -> None:
        """Raises TransactionError when the instant's transaction is not open, or what ended the handle."""
        self._claim.check()
        if instant not in self._open:
            raise TransactionError(f"the transaction of {instant} has ended", fix="Begin a new one.")

    def check_oldest(self, instant: str) -> None:
        """Raises TransactionError when an older transaction is open (rule RO2)."""
        if self._open[0] != instant:
            raise TransactionError(
                f"the transaction of {self._open[0]} is older and still open",
                fix="Commit or roll it back first: transactions commit in the order of their instants.",
            )

    def end(self, instant: str) -> None:
        """Ends a transaction whose instant somebody has seen: no other transaction gets it."""
        self._used = max(self._used, instant)
        self._open.remove(instant)

    def end_all(self) -> None:
        """Ends every open transaction, as ``end`` does."""
        self._used = max(self._used, *self._open, "")
        self._open.clear()

    def take_back(self, instant: str) -> None:
        """Ends a transaction whose instant nobody has seen; the next transaction may use it."""
        self._open.remove(instant)

    def fresh(self) -> list[str]:
        """New instants only, for a slot that reserves all anew (rule TM4). Raises ClockError."""
        return [self._claim.times.next() for _ in range(LIVE_INSTANTS)]

    def renewed(self, ending: str = "") -> list[str]:
        """All instants that are alive after a slot that ends the transaction of ``ending`` (rule TM4). Raises ClockError."""
        alive = [i for i in self._reserved if i != ending and (i in self._open or self._is_unused(i))]
        return alive + [self._claim.times.next() for _ in range(LIVE_INSTANTS - len(alive))]

    @property
    def _reserved(self) -> Sequence[str]:
        return self._claim.state.reserved

    def _is_unused(self, instant: str) -> bool:
        """A later transaction needs a larger instant than all before it: logs are merged in that order (rule RO2)."""
        return instant > max(self._used, *self._open, "")
