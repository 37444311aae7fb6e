"""Winning slot n, or learning who did (rules C3, C4, C5). The only place where a slot is created."""

from headgate_tables.commitlog.slot import Slot, hash_of, slot_path
from headgate_tables.commitlog.tail import read_boundary
from headgate_tables.errors import OperatorNeeded, OutcomeUnknownError, RetryLater, TablesError
from headgate_tables.storage.store import Outcome, Store
from headgate_tables.system import Clock

ATTEMPTS = 60
"""How often the same bytes are sent to the same slot while the store does not say what became of them."""
LONGEST_PAUSE_S = 1.0


def win(store: Store, clock: Clock, slot: Slot) -> str | None:
    """Creates the slot. Returns the hash of its bytes when it is ours, None when another process has the number.

    An unknown outcome repeats the same bytes at the same slot: never the next one, never a guess (hazards H4, H5).
    A slot won at or below the boundary is one that was truncated: not ours (hazard H7, rule G4).
    Raises OutcomeUnknownError when the store still has not answered after about a minute, and what the store raises
    when it is certain that nothing was created (StoreFullError, StoreDeniedError, StoreUnavailableError).
    """
    data = slot.encode()
    path = slot_path(slot.n)
    failed: TablesError | None = None
    for attempt in range(ATTEMPTS):
        try:
            outcome = store.create(path, [data], durable=True)
        except (RetryLater, OperatorNeeded) as error:
            if attempt == 0:
                raise
            # This attempt created nothing for certain; an earlier one, whose outcome is unknown, may have.
            failed, outcome = error, Outcome.UNKNOWN
        if outcome is Outcome.CREATED or (outcome is Outcome.EXISTS and store.get(path).to_pybytes() == data):
            return None if read_boundary(store) >= slot.n else hash_of(data)
        if outcome is Outcome.EXISTS:
            return None
        clock.sleep(min(LONGEST_PAUSE_S, 0.02 * 2**attempt))
    raise OutcomeUnknownError(
        f"the store did not say in {ATTEMPTS} attempts whether slot {slot.n} was created",
        fix="Open the table again once the store answers; `commits()` then tells whether this commit is there.",
    ) from failed
