"""Winning slot n, or learning who did (rules C3, C4, G4). The only place where a slot is created."""

from collections.abc import Callable

from headgate_tables.backoff import Backoff
from headgate_tables.commitlog.log_format import LogFormat
from headgate_tables.commitlog.slot import Slot, decode_slot, hash_of
from headgate_tables.commitlog.tail import read_boundary
from headgate_tables.errors import (
    CorruptFileError,
    OperatorNeeded,
    OptionError,
    OutcomeUnknownError,
    RetryLater,
    StoreUnavailableError,
    TablesError,
    UnsupportedTableError,
)
from headgate_tables.storage.store import Outcome, Store
from headgate_tables.system import Clock

ATTEMPTS = 60
"""How often the same bytes are sent to the same slot while the store does not say what became of them."""
PAUSES = Backoff(first=0.02, longest=1.0)


def win(store: Store, layout: LogFormat, clock: Clock, slot: Slot) -> str | None:
    """Creates the slot. Returns the hash of its bytes when it is ours, None when another process has the number.

    An unknown outcome repeats the same bytes at the same slot: never the next one, never a guess (rule C4).
    A slot won at or below the boundary is one that was truncated: not ours (rule G4).
    Raises OutcomeUnknownError when the store has not answered after about a minute. When certainly nothing was created, raises
    the store's error (StoreFullError, StoreDeniedError, StoreUnavailableError) or OptionError.
    """
    data = _readable(slot, layout)
    path = layout.slot_path(slot.n)
    failed: TablesError | None = None
    for attempt in range(ATTEMPTS):
        try:
            outcome = store.create(path, [data], durable=True)
        except (RetryLater, OperatorNeeded) as error:
            if attempt == 0:
                raise
            # This attempt created nothing for certain; an earlier one, whose outcome is unknown, may have.
            failed, outcome = error, Outcome.UNKNOWN
        if outcome is not Outcome.UNKNOWN:
            try:
                return _own_hash(store, layout, slot.n, data, outcome)
            except CorruptFileError as error:
                if attempt == 0:
                    raise
                failed = error
            except (RetryLater, OperatorNeeded) as error:
                # The number is taken, perhaps by us: a read that fails must not look like a commit that failed.
                failed = error
        clock.sleep(PAUSES.after(attempt + 1))
    raise OutcomeUnknownError(
        f"the store did not say in {ATTEMPTS} attempts whether slot {slot.n} was created",
        fix="Open the table again once the store answers; `commits()` then tells whether this commit is there.",
    ) from failed


def _readable(slot: Slot, layout: LogFormat) -> bytes:
    """The slot's bytes, after a check that they can be read: one slot that nobody can read would end the table."""
    data = slot.encode()
    try:
        decode_slot(data, layout, slot.n)
    except (CorruptFileError, UnsupportedTableError) as error:
        raise OptionError(
            f"nobody could read what slot {slot.n} would hold: {error.message}",
            fix="Pass values of the types that are asked for.",
        ) from error
    return data


def _own_hash(store: Store, layout: LogFormat, n: int, data: bytes, outcome: Outcome) -> str | None:
    path = layout.slot_path(n)
    try:
        if outcome is Outcome.EXISTS and store.get(path).to_pybytes() != data:
            return None
        return None if read_boundary(store, layout) >= n else hash_of(data)
    except FileNotFoundError as error:
        if read_boundary(store, layout) >= n:
            return None  # it was truncated meanwhile
        raise CorruptFileError(f"{path} is taken, and no file", fix="Move away what lies there; nothing of ours does.") from error


def unchecked() -> None:
    """For a file that any process may create at any time."""


def create_for_certain(
    store: Store, clock: Clock, path: str, content: bytes, *, durable: bool, check_owner: Callable[[], None] = unchecked
) -> Outcome:
    """Creates a file that is not a slot, and repeats that until its existence is certain: CREATED or EXISTS.

    ``check_owner`` is called before each attempt, and raises when the file may not be created any more (hazard H8).
    Raises StoreUnavailableError when the store has not answered after about a minute.
    """
    for attempt in range(ATTEMPTS):
        check_owner()
        outcome = store.create(path, [content], durable=durable)
        if outcome is not Outcome.UNKNOWN:
            return outcome
        clock.sleep(PAUSES.after(attempt + 1))
    raise StoreUnavailableError(
        f"the store did not say in {ATTEMPTS} attempts whether {path} was created", fix="Try again once the store answers."
    )
